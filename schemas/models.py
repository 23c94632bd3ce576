"""``models.changes``, ``models.metrics``, ``models.state``, ``alerts.threshold``: what the monitors publish."""

from __future__ import annotations

import pyarrow as pa

from chainlake.schemas.table import TIMESTAMP, Check, Column, Table

#: An array of (feature, value) in model order; maps cannot be compared, arrays can.
COEFFICIENTS = pa.list_(
    pa.field("element", pa.struct([pa.field("feature", pa.string()), pa.field("value", pa.float64())]))
)

KINDS = ("init", "sync", "change", "node_change", "recovered", "unidentifiable")

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
)

ALERT_KINDS = ("below", "recovered")

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
)

METRICS = Table(
    schema="models",
    name="metrics",
    comment="Per model, group and day: what the monitor did, would have sent, and how well the model fits.",
    columns=(
        Column("model", pa.string(), "Name of the model or threshold monitor.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("day", pa.date32(), "UTC day.", False),
        Column("rounds", pa.int64(), "Rounds used.", False),
        Column("rounds_skipped", pa.int64(), "Round slots of the day not used: nodes or values missing.", False),
        Column("syncs", pa.int64(), "Syncs of the local detector, the first one excluded."),
        Column("changes", pa.int64(), "Changes found by the exact detector."),
        Column("reports_up", pa.int64(), "Violation reports sent by nodes; of a threshold monitor all values sent."),
        Column("polls_down", pa.int64(), "Polls sent to nodes; of a threshold monitor questions and thresholds sent."),
        Column("normalized_up", pa.float64(), "Messages up per node and round."),
        Column("normalized_all", pa.float64(), "Messages in both directions per node and round."),
        Column("bytes", pa.int64(), "Bytes sent in both directions."),
        Column(
            "max_error",
            pa.float64(),
            "Largest distance between exact and reference model after a round, in the unit of eps.",
        ),
        Column("per_T", pa.int64(), "Largest period, in rounds, whose periodic updates keep max_error."),
        Column("per_T_mono", pa.int64(), "Largest period, in rounds, up to which all periods keep max_error."),
        Column("carried_share", pa.float64(), "Share of (node, round) values that were carried forward, 0 to 1."),
        Column("r2", pa.float64(), "R squared of the exact windowed model over the day's rounds, at most 1."),
    ),
    key=("model", "group_id", "day"),
    checks=(Check("rounds_positive", "rounds > 0"), Check("skipped_not_negative", "rounds_skipped >= 0")),
)

STATE = Table(
    schema="models",
    name="state",
    comment="State of each model at the end of a day: a cache from which later days go on.",
    columns=(
        Column("model", pa.string(), "Name of the model.", False),
        Column("group_id", pa.string(), "Independent model of the same kind, empty if there is just one.", False),
        Column("day", pa.date32(), "UTC day at whose end the state holds.", False),
        Column(
            "fingerprint",
            pa.string(),
            "state_out of the day in ops.intervals, of all groups together; a row with another one is not used.",
            False,
        ),
        Column("state", pa.string(), "State as JSON, documented in docs/model-change.md.", False),
    ),
    key=("model", "group_id", "day"),
)
