import java.io.File;
import java.io.FileOutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/**
 * A running count of keys over a log that the clock writes: CountJob DIRECTORY SPLITS ROWS KEYS ROW_US PIECES.
 *
 * <p>The log has SPLITS splits of ROWS rows. Rows are due by the rates of PIECES ("from_s:rate_per_s,..." of a
 * split) since the moment that the file DIRECTORY/go holds (ms since the epoch), in steps of TICK_MS. A row
 * that is due already is read at once, so after an outage there is a backlog. Row k of a split has its key
 * k mod KEYS, which no other split has: its count must be k / KEYS + 1. ROW_US: CPU time that counting a row
 * costs, in microseconds, whatever the machine.
 */
public class CountJob {
    static final long TICK_MS = 5L;
    static final long LINE_MS = 20L;
    static final int CHUNK = 4000;

    public static void main(String[] args) throws Exception {
        String directory = args[0];
        int splits = Integer.parseInt(args[1]);
        long rows = Long.parseLong(args[2]);
        long keys = Long.parseLong(args[3]);
        String[] pieces = args[5].split(",");
        double[] from = new double[pieces.length];
        double[] rates = new double[pieces.length];
        for (int i = 0; i < pieces.length; i++) {
            String[] both = pieces[i].split(":");
            from[i] = Double.parseDouble(both[0]);
            rates[i] = Double.parseDouble(both[1]);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.fromSource(
                new DataGeneratorSource(new Due(directory, rows, from, rates), splits * rows, Types.LONG),
                WatermarkStrategy.noWatermarks(), "log", Types.LONG)
            .keyBy(new Key(rows, keys), Types.LONG)
            .process(new Count(Long.parseLong(args[4]) * 1000L), Types.TUPLE(Types.LONG, Types.LONG))
            .name("count")
            .sinkTo(new Out(directory, splits, rows, keys))
            .name("out");
        env.execute("count");
    }

    /** Hands a row out when it is due. */
    public static class Due implements GeneratorFunction {
        final String directory;
        final long rows;
        final double[] from;
        final double[] rates;
        transient long begun;
        transient int piece;
        transient double before;

        Due(String directory, long rows, double[] from, double[] rates) {
            this.directory = directory;
            this.rows = rows;
            this.from = from;
            this.rates = rates;
        }

        public void open(SourceReaderContext context) throws Exception {}

        public void close() throws Exception {}

        public Object map(Object index) throws Exception {
            if (begun == 0L) {
                begun = begin();
            }
            double k = (double) (((Long) index).longValue() % rows);
            while (piece + 1 < from.length && before + rates[piece] * (from[piece + 1] - from[piece]) <= k) {
                before += rates[piece] * (from[piece + 1] - from[piece]);
                piece++;
            }
            long due = (long) Math.ceil((from[piece] + (k - before) / rates[piece]) * 1000.0 / TICK_MS) * TICK_MS;
            long wait = begun + due - System.currentTimeMillis();
            if (wait > 0L) {
                Thread.sleep(wait);
            }
            return index;
        }

        long begin() throws Exception {
            File go = new File(directory, "go");
            while (!go.exists()) {
                Thread.sleep(TICK_MS);
            }
            return Long.parseLong(new String(Files.readAllBytes(go.toPath())).trim());
        }
    }

    public static class Key implements KeySelector {
        final long rows;
        final long keys;

        Key(long rows, long keys) {
            this.rows = rows;
            this.keys = keys;
        }

        public Object getKey(Object index) throws Exception {
            long i = ((Long) index).longValue();
            return Long.valueOf(i / rows * keys + i % rows % keys);
        }
    }

    /** Index of the row, and how often its key has come. */
    public static class Count extends KeyedProcessFunction {
        final long costs;
        transient ValueState count;
        transient ThreadMXBean cpu;
        transient long work;

        Count(long costs) {
            this.costs = costs;
        }

        public void open(OpenContext context) throws Exception {
            cpu = ManagementFactory.getThreadMXBean();
            count = getRuntimeContext().getState(new ValueStateDescriptor("count", Types.LONG));
        }

        public void processElement(Object index, KeyedProcessFunction.Context context, Collector out)
                throws Exception {
            long until = cpu.getCurrentThreadCpuTime() + costs;
            Long before = (Long) count.value();
            long now = before == null ? 1L : before.longValue() + 1L;
            count.update(Long.valueOf(now));
            while (cpu.getCurrentThreadCpuTime() < until) {
                for (int i = 0; i < CHUNK; i++) { // asking for the time costs a call of the system
                    work = work * 6364136223846793005L + 1442695040888963407L;
                }
            }
            out.collect(new Tuple2(index, Long.valueOf(now)));
        }
    }

    public static class Out implements Sink {
        final String directory;
        final int splits;
        final long rows;
        final long keys;

        Out(String directory, int splits, long rows, long keys) {
            this.directory = directory;
            this.splits = splits;
            this.rows = rows;
            this.keys = keys;
        }

        public SinkWriter createWriter(WriterInitContext context) throws java.io.IOException {
            int subtask = context.getTaskInfo().getIndexOfThisSubtask();
            int attempt = context.getTaskInfo().getAttemptNumber();
            return new Writer(new File(directory, "out-" + subtask + "-" + attempt + ".csv"), splits, rows, keys);
        }
    }

    /**
     * Writes at most every LINE_MS: ms since the epoch, rows that came, and of these those with too small and
     * too large a count, the newest row of each split (-1: none).
     */
    public static class Writer implements SinkWriter {
        final FileOutputStream file;
        final long rows;
        final long keys;
        final long[] newest;
        long came;
        long few;
        long many;
        long written;

        Writer(File file, int splits, long rows, long keys) throws java.io.IOException {
            this.file = new FileOutputStream(file);
            this.rows = rows;
            this.keys = keys;
            newest = new long[splits];
            java.util.Arrays.fill(newest, -1L);
        }

        public void write(Object element, SinkWriter.Context context)
                throws java.io.IOException, InterruptedException {
            long index = ((Long) ((Tuple2) element).f0).longValue();
            long count = ((Long) ((Tuple2) element).f1).longValue();
            long k = index % rows;
            came++;
            if (count < k / keys + 1) {
                few++;
            }
            if (count > k / keys + 1) {
                many++;
            }
            newest[(int) (index / rows)] = k;
            long now = System.currentTimeMillis();
            if (now - written >= LINE_MS) {
                line(now);
            }
        }

        void line(long now) throws java.io.IOException {
            written = now;
            StringBuilder line = new StringBuilder();
            line.append(now).append(',').append(came).append(',').append(few).append(',').append(many);
            for (int i = 0; i < newest.length; i++) {
                line.append(',').append(newest[i]);
            }
            file.write(line.append('\n').toString().getBytes());
        }

        public void flush(boolean end) throws java.io.IOException, InterruptedException {
            line(System.currentTimeMillis());
        }

        public void close() throws Exception {
            file.close();
        }
    }
}
