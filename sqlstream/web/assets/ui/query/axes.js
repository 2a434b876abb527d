// The axes of a chart: texts that are never cut, and times with their dates.

const LEAST_WIDTH = 58; // most texts, so that the charts of a column have the same times below each other
const MARGIN = 12;
const DAY_SECONDS = 86_400;
const ONE_LINE = 26;
const TWO_LINES = 40;

/** Steps of an axis of seconds. */
export const SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000, 864_000];

/** Steps of an axis of milliseconds. */
export const MILLISECONDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, ...SECONDS.map((step) => step * 1_000)];

/** Returns the texts of an axis, without zeros that all of them end with. */
export function labels(format) {
  return (plot, ticks) => ticks.map((value) => format(value).replace(/(\.\d*?)0+(?=\D|$)/, "$1").replace(/\.(?=\D|$)/, ""));
}

/** Returns the width of a vertical axis, so that its longest text fits. */
export function widthOf(plot, texts, number, cycle) {
  const axis = plot.axes[number];
  if (cycle > 1) return axis._size; // its texts depend on the height, which does not change any more
  plot.ctx.save();
  [plot.ctx.font] = axis.font;
  const widest = (texts || []).reduce((top, text) => Math.max(top, plot.ctx.measureText(text).width), 0);
  plot.ctx.restore();
  return Math.max(LEAST_WIDTH, Math.ceil(widest / devicePixelRatio) + MARGIN);
}

/** Returns the height of an axis of time, which has two lines if there are dates under the times of day. */
export function heightOf(plot, texts) {
  return (texts || []).some((text) => text?.includes("\n")) ? TWO_LINES : ONE_LINE;
}

const pad = (number) => String(number).padStart(2, "0");

/** Returns local times. If they are of more than one day, the first of each day has its date. */
export function timeLabels(plot, ticks, index, space, step) {
  const { min, max } = plot.scales.x;
  const dates = ticks.map((tick) => dateOf(tick));
  if (step >= DAY_SECONDS) return dates;
  const hasDates = max - min > DAY_SECONDS || dateOf(min) !== dateOf(max);
  return ticks.map((tick, number) => {
    const time = new Date(tick * 1000);
    const clock = `${pad(time.getHours())}:${pad(time.getMinutes())}${step < 60 ? `:${pad(time.getSeconds())}` : ""}`;
    return hasDates && dates[number] !== dates[number - 1] ? `${clock}\n${dates[number]}` : clock;
  });
}

function dateOf(seconds) {
  const time = new Date(seconds * 1000);
  return `${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}
