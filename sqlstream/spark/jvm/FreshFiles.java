package sqlstream;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.deploy.SparkHadoopUtil;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.InMemoryFileIndex;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.NoopCache$;
import org.apache.spark.sql.execution.streaming.runtime.MetadataLogFileIndex;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * A rule of Spark's optimizer, which runs for each micro-batch. compiled_java.py compiles it in the driver.
 *
 * It has no generic types, because Janino, the compiler of the code that Spark generates, ignores them.
 */
public class FreshFiles extends Rule {
  public TreeNode apply(TreeNode plan) {
    return fresh((LogicalPlan) plan);
  }

  // TreeNode.transform would drop the new relations: to Spark, two lists of the same paths are equal
  private LogicalPlan fresh(LogicalPlan node) {
    if (node instanceof LogicalRelation) {
      return freshRelation((LogicalRelation) node);
    }
    List children = new ArrayList();
    boolean changed = false;
    for (Iterator each = node.children().iterator(); each.hasNext(); ) {
      LogicalPlan child = (LogicalPlan) each.next();
      LogicalPlan now = fresh(child);
      changed |= now != child;
      children.add(now);
    }
    return changed ? (LogicalPlan) node.withNewChildren(seqOf(children)) : node;
  }

  private LogicalPlan freshRelation(LogicalRelation node) {
    if (!(node.relation() instanceof HadoopFsRelation)) {
      return node;
    }
    HadoopFsRelation files = (HadoopFsRelation) node.relation();
    if (node.catalogTable().isDefined() && files.partitionSchema().nonEmpty()) {
      return node; // the catalog says which folders are partitions
    }
    FileIndex listed = node.isStreaming() ? eachFileOnce(files) : filesOfNow(files);
    if (listed == files.location()) {
      return node;
    }
    List fields = new ArrayList();
    for (Iterator each = node.productIterator(); each.hasNext(); ) {
      fields.add(each.next());
    }
    fields.set(0, files.copy(listed, files.partitionSchema(), files.dataSchema(), files.bucketSpec(),
        files.fileFormat(), files.options(), files.sparkSession()));
    return (LogicalPlan) node.makeCopy(fields.toArray());
  }

  // SPARK-58518: a stream lists all files of a batch again for each whose path could be a pattern
  private FileIndex eachFileOnce(HadoopFsRelation files) {
    FileIndex listed = files.location();
    if (!(listed instanceof InMemoryFileIndex) || files.partitionSchema().nonEmpty()) {
      return listed; // Spark reads each file of a partition once
    }
    Seq paths = (Seq) listed.rootPaths().distinct();
    return paths.size() == listed.rootPaths().size() ? listed : list(files, paths);
  }

  // Spark lists the files of a static table once, when a query starts, with their lengths
  private FileIndex filesOfNow(HadoopFsRelation files) {
    FileIndex listed = files.location();
    if (listed instanceof MetadataLogFileIndex) {
      FileIndex written = new MetadataLogFileIndex(files.sparkSession(), (Path) listed.rootPaths().head(),
          files.options(), Option.apply(files.schema()));
      // a new index is never equal to another, and the optimizer repeats its rules until nothing changes
      return java.util.Arrays.equals(written.inputFiles(), listed.inputFiles()) ? listed : written;
    }
    if (!(listed instanceof InMemoryFileIndex)) {
      return listed;
    }
    Seq paths = pathsOfNow(files);
    FileIndex now = listed;
    if (paths.toSet().equals(listed.rootPaths().toSet())) {
      listed.refresh();
    } else {
      now = list(files, paths);
    }
    if (now.inputFiles().length > 0 && !now.partitionSchema().equals(files.partitionSchema())) {
      throw new IllegalStateException("The folders of the static table " + pathOf(files) + " have other partitions ("
          + now.partitionSchema().simpleString() + ") than when the query started ("
          + files.partitionSchema().simpleString() + "); a new start of the query reads them");
    }
    return now;
  }

  private Seq pathsOfNow(HadoopFsRelation files) {
    String pattern = pathOf(files);
    Option globs = files.options().get("__globPaths__");
    if (pattern == null || globs.contains("false")) {
      return files.location().rootPaths().toSeq();
    }
    Configuration settings = files.sparkSession().sessionState().newHadoopConfWithOptions(files.options());
    Path path = new Path(pattern);
    FileSystem system = null;
    try {
      system = path.getFileSystem(settings);
    } catch (java.io.IOException error) {
      throw new java.io.UncheckedIOException(error);
    }
    Seq found = SparkHadoopUtil.get().globPathIfNecessary(system, system.makeQualified(path)).toSeq();
    if (found.isEmpty()) {
      throw new IllegalStateException("No file or folder matches the path of the static table " + pattern + " any more");
    }
    return found;
  }

  private static String pathOf(HadoopFsRelation files) {
    Option path = files.options().get("path");
    return path.isDefined() ? (String) path.get() : null;
  }

  private static InMemoryFileIndex list(HadoopFsRelation files, Seq paths) {
    return new InMemoryFileIndex(files.sparkSession(), paths, files.options(), Option.apply(files.schema()),
        NoopCache$.MODULE$, Option.empty(), Option.empty());
  }

  private static Seq seqOf(List items) {
    return CollectionConverters.asScala(items).toSeq();
  }
}
