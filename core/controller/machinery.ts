import type { ResolvedKind } from "../api/kind.ts";
import type { KubernetesObject } from "../api/object.ts";
import { parseKey } from "../api/object_key.ts";
import type {
  CacheEvent,
  InformerHandler,
} from "../cache/informer/cache_event.ts";
import type { LogFields, Logger } from "../logger.ts";
import type { ApplyMemory } from "./apply_memory.ts";
import { type ControllerSettings, finalizerOf } from "./controller_settings.ts";
import type { ControllerSurroundings } from "./controller_surroundings.ts";
import { Dispatcher } from "./dispatcher.ts";
import { EventProcessor } from "./event_processor.ts";
import { EventRecorder } from "./event_recorder.ts";
import { defaultFinalizer } from "./finalizer.ts";
import { accepts, isRelevantUpdate } from "./filters.ts";
import { OverdueRuns } from "./overdue_runs.ts";
import { PrimarySource } from "./primary_source.ts";
import type { Reconciler } from "./reconciler.ts";
import { ResultWriter } from "./result_writer.ts";
import type { Run } from "./run.ts";
import type { RunEnvironment } from "./run_environment.ts";
import { RunHistory } from "./run_history.ts";
import { RunReporter } from "./run_reporter.ts";
import { SourceGroup } from "./source_group.ts";
import { tracedRuns } from "./traced_runs.ts";
import { WatchGroup } from "./watch_group.ts";
import { writeObserver } from "./write_observer.ts";

/** The parts of a controller, which live from one start to the next stop. */
export interface Machinery<P extends KubernetesObject> {
  readonly primaries: PrimarySource<P>;
  readonly sources: SourceGroup<P>;
  /** Primaries and sources in step. */
  readonly watches: WatchGroup<P>;
  readonly processor: EventProcessor<P>;
  readonly recorder: EventRecorder;
  readonly history: RunHistory<P>;
  /** Runs that go on after they were asked to end. */
  readonly overdue: OverdueRuns<P>;
}

/** What a controller is put together from. */
export interface MachineryOptions<P extends KubernetesObject> {
  readonly kind: ResolvedKind<P>;
  readonly reconciler: Reconciler<P>;
  readonly settings: ControllerSettings<P>;
  readonly surroundings: ControllerSurroundings;
}

/**
 * Puts a controller together: primaries and sources feed the processor, which
 * has the dispatcher do what it decides.
 */
export function assemble<P extends KubernetesObject>(
  options: MachineryOptions<P>,
): Machinery<P> {
  const { kind, reconciler, settings, surroundings } = options;
  const { client, clock, metrics, informers } = surroundings;
  const { name: controller, fieldManager, selection } = settings;
  const log = surroundings.log.with({ controller });
  const finalizer = finalizerOf(settings, kind);
  const primaries = new PrimarySource<P>({
    name: controller,
    kind,
    informers,
    selection,
    indexes: settings.indexes,
    onEvent: (event) => onPrimary(event),
    onLeft(key) {
      tellGone(key, undefined);
      processor.forget(key, "namespace");
    },
    onGone(key, last) {
      tellGone(key, last);
      if (last === undefined) processor.forget(key);
      else {
        const finalStateUnknown = true;
        processor.primaryDeleted({ key, object: last, finalStateUnknown });
      }
    },
  });
  const common = { client, informers, clock, log, metrics };
  const managers = new Set([...surroundings.fieldManagers(), fieldManager]);
  // In one order for all controllers, so that they share informers.
  const fieldManagers = [...managers].sort();
  const sources = new SourceGroup<P>(settings.sources, {
    trigger: (key, source, event) => processor.triggered(key, source, event),
    environment: {
      ...common,
      controller,
      primaryKind: kind,
      primaries,
      fieldManagers,
    },
  });
  const { instance, successLevel, tracer } = surroundings;
  const recorder = new EventRecorder({
    ...common,
    component: controller,
    instance,
  });
  const environment: RunEnvironment<P> = {
    ...common,
    controller,
    kind,
    fieldManager,
    finalizer: settings.finalizer ?? defaultFinalizer(kind),
    cacheIsPartial: selection.metadataOnly ||
      selection.prune.some((path) =>
        !/^metadata\.managedFields(\[|$)/.test(path)
      ),
    primaries,
    sources,
    recorder,
    applied: rememberedApplies(),
    onWrite: writeObserver<P>({ ...common, controller }),
    request: (key) => processor.requested(key),
  };
  const dispatcher = new Dispatcher<P>({
    reconciler,
    workflow: settings.workflow,
    mode: settings,
    finalizer,
    pauseAnnotation: settings.pauseAnnotation,
    log,
    tracer,
    environment,
    writer: new ResultWriter<P>({
      environment,
      serverSideApply: settings.serverSideApply,
      finalizer,
    }),
  });
  const tellGone = (key: string, object: P | undefined) =>
    sources.primaryEvent({ type: "deleted", key: parseKey(key), object });
  const dispatch = (run: Run<P>) => dispatcher.dispatch(run);
  const history = new RunHistory<P>({ clock });
  const overdue = new OverdueRuns<P>({ clock, log });
  const processor = new EventProcessor<P>({
    settings,
    primaries,
    shard: settings.shard ?? surroundings.shard,
    dispatch: tracer === undefined
      ? dispatch
      : tracedRuns(dispatch, { tracer, controller, kind }),
    cap: surroundings.cap,
    clock,
    random: surroundings.random,
    onFault: (what, error) => report(log, `Cannot ${what}`, { error }),
    observers: [
      overdue,
      history,
      new RunReporter<P>({ ...common, controller, successLevel }),
    ],
  });
  const onPrimary = primaryHandler<P>({
    primaries,
    processor,
    sources,
    settings,
    finalizer,
    log,
  });
  const watches = new WatchGroup<P>({ primaries, sources, clock, log });
  return { primaries, sources, watches, processor, recorder, history, overdue };
}

/** Logs a fault, which may be one of the logger. */
function report(log: Logger, message: string, fields: LogFields): void {
  try {
    log.error(message, fields);
  } catch {
    // There is nobody left to tell.
  }
}

/** What was applied, remembered from the first apply on: it needs hashes. */
function rememberedApplies(): RunEnvironment<KubernetesObject>["applied"] {
  let memory: Promise<ApplyMemory> | undefined;
  return () =>
    memory ??= import("./apply_memory.ts").then(({ ApplyMemory }) =>
      new ApplyMemory()
    );
}

/** Takes a change of a primary: to sources that follow them, then to runs. */
function primaryHandler<P extends KubernetesObject>(
  parts: Pick<Machinery<P>, "primaries" | "processor" | "sources"> & {
    readonly settings: ControllerSettings<P>;
    readonly finalizer: string | undefined;
    readonly log: Logger;
  },
): InformerHandler<P> {
  const { primaries, processor, sources, settings, log } = parts;
  const { defaultFilters, filters } = settings;
  const { generationAware, pauseAnnotation, requestAnnotations } = settings;
  const relevance = {
    finalizer: parts.finalizer,
    generationAware,
    pauseAnnotation,
    requestAnnotations,
  };
  const isAccepted = (event: CacheEvent<P>): boolean => {
    if (
      event.type === "updated" && defaultFilters &&
      !isRelevantUpdate(event, relevance)
    ) return false;
    try {
      return accepts(filters, event);
    } catch (error) {
      log.warn("A filter has thrown: the event is let through", {
        object: event.key,
        error,
      });
      return true;
    }
  };
  const follow = (event: CacheEvent<P>): void => {
    const type = event.type === "updated" ? "modified" : event.type;
    const key = parseKey(event.key);
    if (!event.header.isPartial || type === "deleted") {
      sources.primaryEvent({
        type,
        key,
        get object() {
          return event.object;
        },
      });
      return;
    }
    // A bounded cache has given it up: it is followed once it is read.
    primaries.read(key).then(
      (object) => {
        if (object === undefined || !primaries.has(key)) return;
        sources.primaryEvent({ type, key, object });
      },
      (error) => log.error("Cannot read a primary", { object: key, error }),
    );
  };
  return (event) => {
    if (sources.followsPrimaries) follow(event);
    if (event.type === "deleted") processor.primaryDeleted(event);
    else if (isAccepted(event)) processor.primaryChanged(event);
  };
}
