package sqlstream;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.LiveListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerStageSubmitted;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.TaskInfo;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.collection.Iterator;

/**
 * Adds up, by job group, how long tasks occupied a core, also tasks that failed: from their launch to their end, as in
 * the task time of executors in Spark's UI. A query has one job group. core_time.py compiles and reads it. It has no
 * generic types, because Janino ignores them.
 */
public class CoreTime extends SparkListener {
  private static final int MOST = 10000; // late tasks of a stage that has ended still count
  private SparkContext context;
  private LiveListenerBus bus;
  private final Map groups = new LinkedHashMap() {
    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  };
  private final Map stages = new LinkedHashMap() {
    protected boolean removeEldestEntry(Map.Entry eldest) {
      return size() > MOST;
    }
  };
  private long asked = 0;
  private long answered = 0;

  /** Ends it. */
  public void end() {
    bus.removeListener(this);
  }

  /** Begins to listen, in a queue that no other listener slows down. */
  public void listen(SparkContext context) {
    this.context = context;
    this.bus = context.listenerBus();
    bus.addToQueue(this, "sqlstream");
  }

  public synchronized void onStageSubmitted(SparkListenerStageSubmitted event) {
    Properties properties = event.properties();
    String group = properties == null ? null : properties.getProperty("spark.jobGroup.id");
    if (group != null) {
      long[] counts = (long[]) groups.get(group);
      if (counts == null) {
        counts = new long[3];
        groups.put(group, counts);
      }
      stages.put(Integer.valueOf(event.stageInfo().stageId()), counts);
    }
  }

  public synchronized void onTaskEnd(SparkListenerTaskEnd event) {
    long[] counts = (long[]) stages.get(Integer.valueOf(event.stageId()));
    TaskInfo task = event.taskInfo();
    if (counts != null && task.finished()) {
      counts[0] += task.duration();
      counts[1] += 1;
      counts[2] = Math.max(counts[2], task.duration());
    }
  }

  public synchronized void onOtherEvent(SparkListenerEvent event) {
    if (event instanceof Mark && ((Mark) event).owner == this) {
      answered = Math.max(answered, ((Mark) event).number);
      notifyAll();
    }
  }

  /**
   * Returns the milliseconds and the number of the tasks of groups since the last call, the cores of Spark, 1 if all
   * tasks that have ended are counted, otherwise 0, and the milliseconds of the longest task. `names` are lines; then all
   * of them but the last are forgotten.
   *
   * Events arrive in order, so a mark that has arrived means that all tasks before it are counted. If it does not arrive
   * in time, the missing tasks count in the next call.
   */
  public synchronized String take(String names, long waitMilliseconds) throws InterruptedException {
    long number = ++asked;
    bus.post(new Mark(this, number));
    long end = System.nanoTime() + waitMilliseconds * 1000000L;
    for (long left = waitMilliseconds; answered < number && left > 0; left = (end - System.nanoTime()) / 1000000L) {
      wait(left);
    }
    boolean isComplete = answered >= number;
    long time = 0;
    long tasks = 0;
    long longest = 0;
    String[] each = names.split("\n");
    for (int index = 0; index < each.length; index++) {
      long[] counts = (long[]) (isComplete && index < each.length - 1 ? groups.remove(each[index]) : groups.get(each[index]));
      if (counts != null) {
        time += counts[0];
        tasks += counts[1];
        longest = Math.max(longest, counts[2]);
        counts[0] = 0;
        counts[1] = 0;
        counts[2] = 0;
      }
    }
    return time + " " + tasks + " " + cores() + " " + (isComplete ? 1 : 0) + " " + longest;
  }

  private int cores() {
    int cores = 0;
    for (Iterator each = context.statusStore().executorList(true).iterator(); each.hasNext(); ) {
      cores += ((ExecutorSummary) each.next()).totalCores();
    }
    return cores;
  }

  private static class Mark implements SparkListenerEvent {
    final CoreTime owner;
    final long number;

    Mark(CoreTime owner, long number) {
      this.owner = owner;
      this.number = number;
    }

    public boolean logEvent() {
      return false;
    }
  }
}
