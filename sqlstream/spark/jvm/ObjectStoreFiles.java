package sqlstream;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonPathCapabilities;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.apache.spark.sql.execution.streaming.checkpointing.AbstractFileContextBasedCheckpointFileManager;
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream;

/**
 * Writes the files of checkpoints, and the logs of file sinks, to an object store: each with one request when it is
 * complete. A file that must be new is not written if another process has created it since.
 *
 * Spark's default writes a temporary file and renames it, which on an object store is a copy: three more requests, and
 * of two processes both can succeed. AbortableStreamBasedCheckpointFileManager of spark-hadoop-cloud drops all errors
 * of the request (seen in 4.1.2), so that a batch counts as committed whose file does not exist.
 *
 * "make files-jar" compiles it into the jar beside this file.
 */
public class ObjectStoreFiles extends AbstractFileContextBasedCheckpointFileManager {
  private final Configuration configuration;

  public ObjectStoreFiles(Path folder, Configuration configuration) throws IOException {
    super(folder, configuration);
    this.configuration = configuration;
    if (!fc().hasPathCapability(folder, CommonPathCapabilities.ABORTABLE_STREAM)) {
      throw new UnsupportedFileSystemException(folder + " is not on an object store");
    }
  }

  @Override
  public CancellableFSDataOutputStream createAtomic(Path path, boolean overwriteIfPossible) {
    try {
      FileSystem files = path.getFileSystem(configuration);
      FSDataOutputStreamBuilder<?, ?> builder = files.createFile(path).overwrite(overwriteIfPossible);
      if (!overwriteIfPossible) {
        // without it, the client only asks whether the file exists before it writes it
        builder.must(Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true);
      }
      return new OneRequest(builder.build(), path, overwriteIfPossible);
    } catch (IOException | IllegalArgumentException error) {
      throw raise(error);
    }
  }

  /** Throws a checked exception from a method of Scala, which declares none. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException raise(Throwable error) throws E {
    throw (E) error;
  }

  private final class OneRequest extends CancellableFSDataOutputStream {
    private final FSDataOutputStream stream;
    private final Path path;
    private final boolean overwrites;
    private boolean hasEnded = false;

    OneRequest(FSDataOutputStream stream, Path path, boolean overwrites) {
      super(stream);
      this.stream = stream;
      this.path = path;
      this.overwrites = overwrites;
    }

    @Override
    public synchronized void close() throws IOException {
      if (hasEnded) {
        return;
      }
      hasEnded = true;
      try {
        stream.close();
      } catch (IOException error) {
        // S3's client has its own exception for this; by its name, because its class is in another jar
        if (!overwrites && error.getClass().getSimpleName().equals("RemoteFileChangedException")) {
          IOException exists = new FileAlreadyExistsException(path + " has been created by another process");
          exists.initCause(error);
          throw exists;
        }
        throw error;
      }
    }

    @Override
    public synchronized void cancel() {
      if (!hasEnded) {
        hasEnded = true;
        stream.abort();
      }
    }
  }
}
