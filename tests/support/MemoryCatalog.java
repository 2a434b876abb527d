import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.read.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog of tables in memory that MERGE can change: nothing in Spark's own jars has one. It is for AUTO CDC. */
public class MemoryCatalog implements TableCatalog, SupportsNamespaces {
  private static final Map<String, MemoryTable> TABLES = new ConcurrentHashMap<>();
  private static final Set<String> NAMESPACES = ConcurrentHashMap.newKeySet();
  private String name;

  @Override public void initialize(String name, CaseInsensitiveStringMap options) { this.name = name; }
  @Override public String name() { return name; }

  @Override public Identifier[] listTables(String[] namespace) {
    String start = String.join(".", namespace) + ".";
    return TABLES.keySet().stream().filter(table -> table.startsWith(start))
        .map(table -> Identifier.of(namespace, table.substring(start.length()))).toArray(Identifier[]::new);
  }

  @Override public Table loadTable(Identifier id) throws NoSuchTableException {
    MemoryTable found = TABLES.get(id.toString());
    if (found == null) throw new NoSuchTableException(id);
    return found;
  }

  @Override public Table createTable(Identifier id, TableInfo info) {
    MemoryTable made = new MemoryTable(id.toString(), info.schema(), new HashMap<>(info.properties()));
    TABLES.put(id.toString(), made);
    return made;
  }

  @Override public Table alterTable(Identifier id, TableChange... changes) throws NoSuchTableException {
    MemoryTable table = (MemoryTable) loadTable(id);
    for (TableChange change : changes) {
      if (change instanceof TableChange.SetProperty set) table.properties.put(set.property(), set.value());
      else throw new UnsupportedOperationException("alterTable: " + change);
    }
    return table;
  }

  @Override public boolean dropTable(Identifier id) { return TABLES.remove(id.toString()) != null; }
  @Override public void renameTable(Identifier from, Identifier to) { throw new UnsupportedOperationException(); }

  @Override public String[][] listNamespaces() {
    return NAMESPACES.stream().map(each -> each.split("\\.")).toArray(String[][]::new);
  }
  @Override public String[][] listNamespaces(String[] namespace) { return new String[0][]; }
  @Override public boolean namespaceExists(String[] namespace) { return true; }
  @Override public Map<String, String> loadNamespaceMetadata(String[] namespace) { return Map.of(); }
  @Override public void createNamespace(String[] namespace, Map<String, String> metadata) {
    NAMESPACES.add(String.join(".", namespace));
  }
  @Override public void alterNamespace(String[] namespace, NamespaceChange... changes) { }
  @Override public boolean dropNamespace(String[] namespace, boolean cascade) { return false; }

  /** A table whose rows each write replaces or adds to at once. */
  static class MemoryTable implements SupportsRead, SupportsWrite, SupportsRowLevelOperations {
    private final String name;
    private final StructType schema;
    private final Map<String, String> properties;
    private volatile List<InternalRow> rows = List.of();

    MemoryTable(String name, StructType schema, Map<String, String> properties) {
      this.name = name;
      this.schema = schema;
      this.properties = properties;
    }

    @Override public String name() { return name; }
    @Override public StructType schema() { return schema; }
    @Override public Map<String, String> properties() { return properties; }
    @Override public Set<TableCapability> capabilities() {
      return Set.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
    }

    @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
      Part part = new Part(new ArrayList<>(rows));
      return () -> new Scan() {
        @Override public StructType readSchema() { return schema; }
        @Override public Batch toBatch() {
          return new Batch() {
            @Override public InputPartition[] planInputPartitions() { return new InputPartition[] {part}; }
            @Override public PartitionReaderFactory createReaderFactory() { return new Readers(); }
          };
        }
      };
    }

    @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return new Writing(false); }

    @Override public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
      return () -> new RowLevelOperation() {
        @Override public Command command() { return info.command(); }
        @Override public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
          return MemoryTable.this.newScanBuilder(options);
        }
        @Override public WriteBuilder newWriteBuilder(LogicalWriteInfo write) { return new Writing(true); }
      };
    }

    class Writing implements WriteBuilder, SupportsTruncate {
      private boolean replaces;

      Writing(boolean replaces) { this.replaces = replaces; }

      @Override public WriteBuilder truncate() {
        replaces = true;
        return this;
      }

      @Override public Write build() {
        return new Write() {
          @Override public BatchWrite toBatch() {
            return new BatchWrite() {
              @Override public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
                return new Writers();
              }
              @Override public void commit(WriterCommitMessage[] messages) {
                List<InternalRow> all = new ArrayList<>(replaces ? List.of() : rows);
                for (WriterCommitMessage message : messages) all.addAll(((Written) message).rows);
                rows = all;
              }
              @Override public void abort(WriterCommitMessage[] messages) { }
            };
          }
        };
      }
    }
  }

  record Part(ArrayList<InternalRow> rows) implements InputPartition { }

  record Written(ArrayList<InternalRow> rows) implements WriterCommitMessage { }

  static class Readers implements PartitionReaderFactory {
    @Override public PartitionReader<InternalRow> createReader(InputPartition partition) {
      ArrayList<InternalRow> rows = ((Part) partition).rows();
      return new PartitionReader<>() {
        private int place = -1;
        @Override public boolean next() { return ++place < rows.size(); }
        @Override public InternalRow get() { return rows.get(place); }
        @Override public void close() { }
      };
    }
  }

  static class Writers implements DataWriterFactory {
    @Override public DataWriter<InternalRow> createWriter(int partition, long task) {
      return new DataWriter<>() {
        private final ArrayList<InternalRow> rows = new ArrayList<>();
        @Override public void write(InternalRow row) { rows.add(row.copy()); }
        @Override public WriterCommitMessage commit() { return new Written(rows); }
        @Override public void abort() { }
        @Override public void close() { }
      };
    }
  }
}
