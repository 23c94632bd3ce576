import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.EventSender;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Runs one EPL statement over a stream: {@code EsperPattern STREAM.csv STATEMENT NAMES ROWS.csv REPETITIONS}. */
public final class EsperPattern {
    public abstract static class Ev {
        private final int id;
        private final long ts;
        private final double price;

        Ev(int id, long ts, double price) {
            this.id = id;
            this.ts = ts;
            this.price = price;
        }

        public int getId() {
            return id;
        }

        public long getTs() {
            return ts;
        }

        public double getPrice() {
            return price;
        }
    }

    public static final class A extends Ev {
        public A(int id, long ts, double price) {
            super(id, ts, price);
        }
    }

    public static final class B extends Ev {
        public B(int id, long ts, double price) {
            super(id, ts, price);
        }
    }

    public static final class C extends Ev {
        public C(int id, long ts, double price) {
            super(id, ts, price);
        }
    }

    public static void main(String[] args) throws Exception {
        List<Ev> events = new ArrayList<>();
        List<String> lines = Files.readAllLines(Path.of(args[0]));
        for (String line : lines.subList(1, lines.size())) {
            String[] f = line.split(",");
            int id = Integer.parseInt(f[0]);
            long ts = Long.parseLong(f[2]);
            double price = Double.parseDouble(f[3]);
            events.add(switch (f[1]) {
                case "A" -> new A(id, ts, price);
                case "B" -> new B(id, ts, price);
                default -> new C(id, ts, price);
            });
        }
        String[] names = args[2].split(",");
        for (int repetition = 0; repetition < Integer.parseInt(args[4]); repetition++) {
            Configuration conf = new Configuration();
            for (Class<?> kind : List.of(A.class, B.class, C.class)) {
                conf.getCommon().addEventType(kind.getSimpleName(), kind);
            }
            conf.getRuntime().getThreading().setInternalTimerEnabled(false);
            conf.getRuntime().getExecution().setDisableLocking(true);
            EPCompiled compiled = EPCompilerProvider.getCompiler().compile(args[1], new CompilerArguments(conf));
            EPRuntime runtime = EPRuntimeProvider.getRuntime("run" + repetition, conf);
            EPEventService service = runtime.getEventService();
            service.advanceTime(0);
            List<int[]> rows = new ArrayList<>();
            runtime.getDeploymentService().deploy(compiled).getStatements()[0].addListener((in, out, s, r) -> {
                for (EventBean found : in) {
                    int[] row = new int[names.length];
                    for (int i = 0; i < names.length; i++) {
                        row[i] = ((Ev) found.get(names[i])).getId();
                    }
                    rows.add(row);
                }
            });
            EventSender[] senders = {
                service.getEventSender("A"), service.getEventSender("B"), service.getEventSender("C")
            };
            double began = System.nanoTime() / 1e9;
            for (Ev event : events) {
                service.advanceTime(event.getTs());
                senders[event instanceof A ? 0 : event instanceof B ? 1 : 2].sendEvent(event);
            }
            double wall = System.nanoTime() / 1e9 - began;
            runtime.destroy();
            System.out.printf("{\"wall_s\": %.3f, \"matches\": %d}%n", wall, rows.size());
            if (repetition == 0) {
                try (PrintWriter file = new PrintWriter(args[3])) {
                    for (int[] row : rows) {
                        StringBuilder line = new StringBuilder();
                        for (int id : row) {
                            line.append(line.length() > 0 ? "," : "").append(id);
                        }
                        file.println(line);
                    }
                }
            }
        }
    }
}
