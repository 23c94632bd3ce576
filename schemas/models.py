"""What the monitors publish: a table of findings for each kind, and ``models.metrics`` and ``models.state`` for all."""

from __future__ import annotations

from typing import Literal, get_args

import pyarrow as pa

from chainlake.schemas.table import TIMESTAMP, Check, Column, Table, described

#: An array of (feature, value) in model order: unlike maps, arrays can be compared.
COEFFICIENTS = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                described("feature", pa.string(), "Name of the feature or counter."),
                described(
                    "value",
                    pa.float64(),
                    "Its number in this vector; a coefficient has the unit of the response per unit of the feature.",
                ),
            ]
        ),
    )
)

ChangeKind = Literal["init", "sync", "change", "node_change", "recovered", "unidentifiable"]
KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)

CHANGES = Table(
    schema="models",
    name="changes",
    comment="Every round at which a monitored linear model was set or found to have changed.",
    columns=(
        Column("model", pa.string(), "Name of the model.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("ts", TIMESTAMP, "Start of the round.", False),
        Column("kind", pa.string(), f"One of {', '.join(KINDS)}.", False),
        Column(
            "round",
            pa.int64(),
            "Number of the round within its UTC day, from 0, unused ones included.",
            False,
        ),
        Column("violators", pa.list_(pa.field("element", pa.string())), "Nodes whose local test failed."),
        Column(
            "max_value",
            pa.float64(),
            "Largest value of the local test over the nodes, or distance if exact; in the unit of eps.",
        ),
        Column(
            "error_before", pa.float64(), "Distance between the new and the old reference model, in the unit of eps."
        ),
        Column("exceeded", pa.bool_(), "Whether error_before is above eps; false marks a false alarm."),
        Column("beta_before", COEFFICIENTS, "Reference model until this round."),
        Column("beta_after", COEFFICIENTS, "Reference model from this round on."),
        Column("rounds_since_previous", pa.int64(), "Rounds since the reference model was last set, null at first."),
        Column("event_date", pa.date32(), "UTC day of ts.", False),
    ),
    key=("model", "group_id", "ts", "kind"),
    checks=(
        Check("kind_known", "kind IN (" + ", ".join(f"'{kind}'" for kind in KINDS) + ")"),
        Check("event_date_is_day_of_ts", "event_date = to_date(ts)"),
    ),
    day_column="event_date",
)

AlertKind = Literal["below", "recovered"]
ALERT_KINDS: tuple[AlertKind, ...] = get_args(AlertKind)

ALERTS = Table(
    schema="alerts",
    name="threshold",
    comment="Every round at which the mean over a monitor's sensors fell below its threshold, or came back.",
    columns=(
        Column("monitor", pa.string(), "Name of the monitor.", False),
        Column("ts", TIMESTAMP, "Start of the round.", False),
        Column("kind", pa.string(), f"One of {', '.join(ALERT_KINDS)}.", False),
        Column(
            "mean",
            pa.float64(),
            "Mean over all sensors in that round, in the unit of value; weighted if the monitor is.",
        ),
        Column("n_collected", pa.int64(), "Sensors whose value the coordinator had in that round.", False),
    ),
    key=("monitor", "ts"),
    checks=(Check("kind_known", "kind IN (" + ", ".join(f"'{kind}'" for kind in ALERT_KINDS) + ")"),),
    day_column="ts",
)

ZoneKind = Literal["design", "balanced", "outside", "inside"]
ZONE_KINDS: tuple[ZoneKind, ...] = get_args(ZoneKind)

#: An array of (node, fraction of its past vectors in its zone, the zone's levels facet by facet).
ZONES = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                described("node", pa.string(), "Name of the node."),
                described("coverage", pa.float64(), "Share of its past vectors that are in its zone, 0 to 1."),
                described(
                    "levels",
                    pa.list_(pa.field("element", pa.float64())),
                    "The zone's levels, facet by facet, in the unit of the facet's value.",
                ),
            ]
        ),
    )
)

ZONE_EVENTS = Table(
    schema="models",
    name="zone_events",
    comment="Every round at which nodes left their safe zones, the mean left or entered the region, or zones were set.",
    columns=(
        Column("model", pa.string(), "Name of the monitor.", False),
        Column("group_id", pa.string(), "Independent monitor of the same kind, empty if there is just one.", False),
        Column("ts", TIMESTAMP, "Start of the round.", False),
        Column(
            "kind",
            pa.string(),
            "design: zones set by history; balanced: some nodes were outside their zones, the mean inside the region; "
            "outside, inside: the mean has left the region, or is back.",
            False,
        ),
        Column("round", pa.int64(), "Number of the round within its UTC day, from 0, unused ones included.", False),
        Column("violators", pa.list_(pa.field("element", pa.string())), "Nodes outside their zones."),
        Column("collected", pa.int64(), "Nodes whose vector the coordinator had in that round; null for a design."),
        Column(
            "facets",
            pa.list_(pa.field("element", pa.string())),
            "Facets whose level in its zone some node exceeded.",
        ),
        Column(
            "excess",
            pa.float64(),
            "How far the farthest of them was beyond its zone's level, in the unit of the facet's value.",
        ),
        Column("mean", COEFFICIENTS, "Mean of all nodes' vectors in that round; null for a design."),
        Column("zones", ZONES, "Zones set in that round; coverage for a design only."),
        Column("event_date", pa.date32(), "UTC day of ts.", False),
    ),
    key=("model", "group_id", "ts", "kind"),
    checks=(
        Check("kind_known", "kind IN (" + ", ".join(f"'{kind}'" for kind in ZONE_KINDS) + ")"),
        Check("event_date_is_day_of_ts", "event_date = to_date(ts)"),
    ),
    day_column="event_date",
)

LearnerKind = Literal["sync", "balanced", "day"]
LEARNER_KINDS: tuple[LearnerKind, ...] = get_args(LearnerKind)

LEARNERS = Table(
    schema="models",
    name="learners",
    comment="Learners of shared models whenever they were brought together, and at the end of each day.",
    columns=(
        Column("model", pa.string(), "Name of the model.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("ts", TIMESTAMP, "Start of the round; of a day's row, of its last round.", False),
        Column(
            "kind",
            pa.string(),
            "sync: all continue with the mean of all; balanced: some with the mean of these; day: sums of the day.",
            False,
        ),
        Column("learner", pa.string(), "The node.", False),
        Column("round", pa.int64(), "Number of the round within its UTC day, from 0, unused ones included.", False),
        Column("violator", pa.bool_(), "Whether it was further than the radius from the reference; null for a day."),
        Column("weights", COEFFICIENTS, "Its weights after the round."),
        Column("divergence", pa.float64(), "Mean distance of all learners from their mean after the round."),
        Column("rounds", pa.int64(), "Rounds of the day."),
        Column("loss", pa.float64(), "Sum of its losses of the day, each before it learnt from the example."),
        Column("loss_alone", pa.float64(), "The same for a learner that never shares."),
        Column("loss_static", pa.float64(), "The same for a learner that shares at every check."),
        Column(
            "errors",
            pa.int64(),
            "Predictions of the day more than 1 off, or not of the same sign (logistic; a prediction of 0 has none).",
        ),
        Column("event_date", pa.date32(), "UTC day of ts.", False),
    ),
    key=("model", "group_id", "ts", "kind", "learner"),
    checks=(
        Check("kind_known", "kind IN (" + ", ".join(f"'{kind}'" for kind in LEARNER_KINDS) + ")"),
        Check("event_date_is_day_of_ts", "event_date = to_date(ts)"),
    ),
    day_column="event_date",
)

FAULT_SCORES = Table(
    schema="models",
    name="fault_scores",
    comment="Per day and machine: how far it behaves unlike the others, and in which counters.",
    columns=(
        Column("model", pa.string(), "Name of the model.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("day", pa.date32(), "UTC day, at whose end the window ends.", False),
        Column("machine", pa.string(), "The node.", False),
        Column("rounds", pa.int64(), "Rounds of the window.", False),
        Column("v_norm", pa.float64(), "Length of its mean direction away from the others, 0 to 1.", False),
        Column("gamma", pa.float64(), "How far that is above the mean of all machines; 0 if it is not.", False),
        Column(
            "p", pa.float64(), "Bound of the chance of such a gamma in a machine like the others; may exceed 1.", False
        ),
        Column("flagged", pa.bool_(), "Whether p is below the model's alpha.", False),
        Column("first_flagged", TIMESTAMP, "First round of the day after which the window flags it; null if none."),
        Column("top_counters", COEFFICIENTS, "Its largest components of that direction; a sign says above or below."),
        Column("p_sketch", pa.float64(), "p according to the sketch of the counters, if the model has one."),
        Column("resyncs", pa.int64(), "How often that day it was the first to leave a zone of a counter's variance."),
    ),
    key=("model", "group_id", "day", "machine"),
    checks=(Check("p_not_negative", "p >= 0"),),
    day_column="day",
)

METRICS = Table(
    schema="models",
    name="metrics",
    comment="Per model, group and day: what the monitor did, would have sent, and how well the model fits.",
    columns=(
        Column("model", pa.string(), "Name of the model or monitor.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("day", pa.date32(), "UTC day.", False),
        Column("rounds", pa.int64(), "Rounds used.", False),
        Column("rounds_skipped", pa.int64(), "Round slots of the day not used: nodes or values missing.", False),
        Column(
            "syncs",
            pa.int64(),
            "Syncs of the local detector, the first one excluded; for learners and variance zones all syncs; for safe "
            "zones rounds in which some node left its zone.",
        ),
        Column(
            "changes",
            pa.int64(),
            "Changes found by the exact detector; for safe zones crossings of the region's border, for learners full "
            "syncs, for latent faults machines flagged.",
        ),
        Column(
            "reports_up",
            pa.int64(),
            "Violation reports sent by nodes; for all other kinds whatever nodes sent.",
        ),
        Column(
            "polls_down",
            pa.int64(),
            "Polls sent to nodes; for all other kinds whatever they were sent.",
        ),
        Column("normalized_up", pa.float64(), "Messages up per node and round."),
        Column("normalized_all", pa.float64(), "Messages in both directions per node and round."),
        Column("bytes", pa.int64(), "Bytes sent in both directions."),
        Column(
            "max_error",
            pa.float64(),
            "Largest distance between exact and reference model after a round, in the unit of eps; for learners their "
            "largest divergence after a check.",
        ),
        Column("per_T", pa.int64(), "Largest period, in rounds, whose periodic updates keep max_error."),
        Column("per_T_mono", pa.int64(), "Largest period, in rounds, up to which all periods keep max_error."),
        Column("carried_share", pa.float64(), "Share of (node, round) values that were carried forward, 0 to 1."),
        Column(
            "r2",
            pa.float64(),
            "R squared of the exact windowed model over the day's rounds, at most 1; for latent faults that of the "
            "sketch's scores.",
        ),
    ),
    key=("model", "group_id", "day"),
    checks=(Check("rounds_positive", "rounds > 0"), Check("skipped_not_negative", "rounds_skipped >= 0")),
    day_column="day",
)

STATE = Table(
    schema="models",
    name="state",
    comment="State of each model at the end of a day: a cache from which later days continue.",
    columns=(
        Column("model", pa.string(), "Name of the model.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("day", pa.date32(), "UTC day at whose end this was the state.", False),
        Column(
            "fingerprint",
            pa.string(),
            "state_out of the day in ops.intervals, for all groups together; a row with another one is not used.",
            False,
        ),
        Column("state", pa.string(), "State as JSON, documented in docs/model-change.md.", False),
    ),
    key=("model", "group_id", "day"),
    day_column="day",
)

#: The tables of findings, one for each kind, in the order in which tables are locked; the first column of each key is
#: the owner of a row.
FINDINGS = (ALERTS, CHANGES, FAULT_SCORES, LEARNERS, ZONE_EVENTS)
#: All tables that hold rows of several models, in the order in which they are locked.
SHARED = (*FINDINGS, METRICS, STATE)
