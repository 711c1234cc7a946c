import { durationText, type ObjectHistory } from "@coracle/operator/core";
import { causeText } from "@coracle/operator/internal";
import { requestText } from "../testing/replay/compare_requests.ts";
import type { KeptRun, Recording } from "../testing/replay/read_recording.ts";
import type { WindowSource } from "./window/window_server.ts";

/** Maximum number of objects, and of their runs, in the state of the page. */
const MAX_OBJECTS = 200;
const MAX_RUNS = 10;

/** Recorded runs by controller and object, as `coracle why` shows those of now. */
export function recordedHistories(
  { processes }: Recording,
  object?: string,
): readonly ObjectHistory[] {
  const runs = processes.flatMap(({ runs }) => runs).filter(({ key }) =>
    object === undefined || key === object
  );
  const groups = Map.groupBy(
    runs,
    ({ controller, key }) => `${controller} ${key}`,
  );
  return Array.from(groups.values(), (of) => {
    const [{ controller, key }] = of as [KeptRun];
    return {
      ...{ controller, object: key, known: true, attempt: 0 },
      ...{ running: false, exhausted: false, runs: of.map(toldOf) },
    };
  });
}

function toldOf(run: KeptRun): ObjectHistory["runs"][number] {
  const { at, attempt, cause, waited, steps, end } = run;
  return {
    at: new Date(at).toISOString(),
    ...{ attempt, waited, duration: end.t, step: end.step },
    cause: causeText(cause),
    outcome: end.outcome === "done"
      ? "success"
      : end.outcome === "failed"
      ? "failure"
      : "aborted",
    writes: steps.flatMap(({ request }) =>
      request === undefined || request.method === "GET"
        ? []
        : requestText(request)
    ),
    error: end.error,
    next: end.next && `${end.next[0]} in ${durationText(end.next[1])}`,
  };
}

/** Recorded runs as the source of the page. */
export function recordedSource(recording: Recording): WindowSource {
  const histories = recordedHistories(recording);
  const latest = histories.toSorted((a, b) =>
    a.runs.at(-1)!.at < b.runs.at(-1)!.at ? 1 : -1
  );
  const controllers = Array.from(
    Map.groupBy(latest, ({ controller }) => controller),
    ([name, objects]) => ({
      ...{ name, kind: "recorded runs", ready: true, active: true },
      ...{ healthy: true, faults: [], waiting: 0, running: 0, delayed: 0 },
      primaries: objects.length,
      failing:
        objects.filter(({ runs }) => runs.at(-1)?.outcome === "failure").length,
      objects: objects.slice(0, MAX_OBJECTS).map((history) => ({
        ...history,
        runs: history.runs.slice(-MAX_RUNS),
      })),
    }),
  );
  const state = [{ state: "started", controllers }];
  return {
    state: () => Promise.resolve(state),
    object: (key) =>
      Promise.resolve({
        histories: histories.filter(({ object }) => object === key),
      }),
  };
}
