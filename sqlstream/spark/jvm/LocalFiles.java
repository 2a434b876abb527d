package sqlstream;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's file system of this machine, which sets the permissions of new files itself. Without Hadoop's native
 * library, which PySpark does not contain, Hadoop starts a process, chmod, for each file and for its checksums. A
 * batch with state writes a dozen files.
 *
 * "make files-jar" compiles it into the jar beside this file.
 */
public class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new WithoutProcesses());
  }

  private static class WithoutProcesses extends RawLocalFileSystem {
    private static final PosixFilePermission[] EACH = PosixFilePermission.values(); // from the owner's reading on

    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      int bits = permission.toShort();
      if (bits >> EACH.length != 0 || pathToFile(path).isDirectory()) {
        super.setPermission(path, permission); // Java cannot set the sticky bit, and clears setgid
        return;
      }
      Set<PosixFilePermission> given = EnumSet.noneOf(PosixFilePermission.class);
      for (int index = 0; index < EACH.length; index++) {
        if ((bits >> (EACH.length - 1 - index) & 1) != 0) {
          given.add(EACH[index]);
        }
      }
      try {
        Files.setPosixFilePermissions(pathToFile(path).toPath(), given);
      } catch (UnsupportedOperationException | InvalidPathException error) {
        super.setPermission(path, permission);
      }
    }
  }
}
