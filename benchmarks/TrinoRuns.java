import static io.trino.testing.TestingSession.testSessionBuilder;

import io.airlift.slice.Slice;
import io.trino.Session;
import io.trino.metadata.InternalFunctionBundle;
import io.trino.plugin.memory.MemoryConnectorFactory;
import io.trino.spi.block.Block;
import io.trino.spi.block.LongArrayBlock;
import io.trino.spi.function.ScalarFunction;
import io.trino.spi.function.SqlType;
import io.trino.testing.LocalQueryRunner;
import io.trino.testing.MaterializedRow;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * Runs Trino in one process, on one thread. Each line of the input is {@code load FOLDER TABLE},
 * {@code run QUERY.sql TABLE} or {@code answer TABLE FILE}, and is answered by a line. The rows of a query are kept as a
 * table in memory.
 */
public final class TrinoRuns {
    private final LocalQueryRunner trino;

    /** Functions that read a file of 64-bit numbers as an array. */
    public static final class Columns {
        private Columns() {}

        @ScalarFunction(value = "whole", deterministic = false)
        @SqlType("array(bigint)")
        public static Block whole(@SqlType("varchar") Slice file) throws IOException {
            LongBuffer found = ByteBuffer.wrap(Files.readAllBytes(Path.of(file.toStringUtf8())))
                .order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
            long[] values = new long[found.remaining()];
            found.get(values);
            return new LongArrayBlock(values.length, Optional.empty(), values);
        }

        @ScalarFunction(value = "decimals", deterministic = false)
        @SqlType("array(double)")
        public static Block decimals(@SqlType("varchar") Slice file) throws IOException {
            return whole(file);
        }
    }

    private TrinoRuns() {
        Session session = testSessionBuilder()
            .setCatalog("memory").setSchema("default")
            .setSystemProperty("task_concurrency", "1").build();
        trino = LocalQueryRunner.create(session);
        trino.addFunctions(InternalFunctionBundle.builder().scalars(Columns.class).build());
        trino.createCatalog("memory", new MemoryConnectorFactory(), Map.of("memory.max-data-per-node", "3GB"));
    }

    public static void main(String[] args) throws Exception {
        TrinoRuns runs = new TrinoRuns();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "load" -> runs.load(words[1], words[2]);
                case "run" -> runs.trino.execute(
                    "CREATE TABLE " + words[2] + " AS " + Files.readString(Path.of(words[1])));
                default -> runs.write(words[1], Path.of(words[2]));
            }
            System.out.println("done");
        }
        System.exit(0);
    }

    /** Makes a table of the columns in a folder, one file each. */
    private void load(String folder, String table) {
        trino.execute(("CREATE TABLE " + table + " AS "
            + "SELECT k, ts, element_at(ARRAY['View', 'Cart', 'Buy', 'Help'], kind + 1) AS type, x "
            + "FROM UNNEST(whole('@/k'), whole('@/ts'), whole('@/type'), decimals('@/x')) AS t(k, ts, kind, x)")
            .replace("@", folder));
    }

    private void write(String table, Path file) throws Exception {
        try (DataOutputStream out = new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(file)))) {
            for (MaterializedRow row : trino.execute("SELECT * FROM " + table)) {
                for (Object value : row.getFields()) {
                    out.writeLong(((Number) value).longValue());
                }
            }
        }
    }
}
