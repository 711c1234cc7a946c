import { type Kind, kindText, sameKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey } from "../../api/object_key.ts";
import type { Answer } from "../../client/response.ts";
import type { Clock } from "../../clock.ts";
import { prunedField } from "../../json/prune.ts";
import type { Logger } from "../../logger.ts";
import type { Counter, MetricLabels, Metrics } from "../../metrics.ts";
import { pauseAfter } from "../../pace.ts";
import { diffJsonPatch, pointerSteps } from "../../patch/json_patch.ts";
import { jsonEquals } from "../../patch/json_value.ts";
import { LatestMap } from "../latest_map.ts";
import { textHash } from "../shard.ts";
import type { Run } from "./run.ts";
import {
  changedFields,
  fieldOf,
  valueAt,
  writeChanges,
} from "./write_changes.ts";

/** Write that the server has stored. */
export interface StoredWrite {
  /** Verb for texts: `apply`, `patch` and so on. */
  readonly verb: string;
  readonly subresource?: "status" | undefined;
  readonly kind: Kind;
  /** Object before the write; undefined if no cache held it. */
  readonly before: KubernetesObject | undefined;
  /** Answer of the server. */
  readonly after: Pick<
    Answer<KubernetesObject>,
    "keyText" | "object" | "resourceVersion" | "sent" | "statusJson" | "uid"
  >;
  /** Whether only the status was written, and `before` is complete. */
  readonly isStatus: boolean;
  /** Prefix of the name, if the server has made the rest of it. */
  readonly prefix?: string | undefined;
  /** Object with its managed fields, read right before the write if requested. */
  readonly live?: KubernetesObject | undefined;
}

/** Stored write of the run of a primary. */
interface ObservedWrite
  extends Pick<StoredWrite, "after" | "before" | "prefix"> {
  /** Text that identifies primary, verb and object. */
  readonly id: string;
  /** Time by the clock of the controller, in milliseconds. */
  readonly now: number;
  /** Time that the run has waited in the queue, in milliseconds. */
  readonly waited: number;
}

/** Loop of writes: runs repeat a write, because its effect does not last. */
export interface WriteLoop {
  /** Number of consecutive identical writes. */
  readonly times: number;
  /** Fields that change with every write, at most five; none if deleted. */
  readonly fields: readonly string[];
  /** Pause before the next run of the primary, in milliseconds. */
  readonly pause: number;
}

/** Number of consecutive identical writes that count as a loop. */
const LOOP_WRITES = 5;
/**
 * Longest time between two writes of a loop, without the wait in the queue, which
 * is long if very many objects are in a loop.
 */
const LOOP_WINDOW_MS = 60_000;
/** Pauses of an object whose runs repeat a write. */
const PAUSE = { initial: 1_000, max: 60_000 } as const;
/**
 * Number of objects with generated names after which the pause grows: runs that
 * make one each may have many to make.
 */
const MADE_A_PAUSE = 20;
/** Minimum number of targets kept in memory: those that were written last. */
const MIN_TARGETS = 2_000;
/** Number of others that are kept of very many, for loops that include these. */
const SAMPLED_TARGETS = 2_000;
/** The same for targets whose status is kept. */
const SAMPLED_STATUSES = 500;
/** Maximum number of fields that are listed for a loop. */
const MAX_FIELDS = 5;

/** Latest write to a target; the next one reuses it. */
interface LastWrite {
  /** Hash of the body of the write. */
  hash: number;
  /** Number of consecutive identical writes. */
  times: number;
  /** Time of the write by the clock of the controller, in milliseconds. */
  at: number;
  /** UID of the object if the write created it. */
  created: string | undefined;
}

/**
 * Detector of runs that repeat the same write, each time with an effect:
 * another client reverts the fields or deletes the object, or the server stores
 * them in another form. Without a pause the runs would repeat it indefinitely.
 *
 * Of very many targets that are written in turn a sample is watched: a loop of
 * all is seen by these, and only the runs that write them are delayed.
 */
export class WriteLoopDetector {
  readonly #lastWrites: LatestMap<LastWrite> = new LatestMap(
    MIN_TARGETS,
    SAMPLED_TARGETS,
  );

  /**
   * Records a write.
   *
   * @returns The loop that the write is part of; undefined if absent.
   */
  observe(write: ObservedWrite): WriteLoop | undefined {
    const { before, after, now, waited, prefix } = write;
    const { resourceVersion, uid } = after;
    const isChange = before !== undefined && before.metadata.uid === uid;
    // Different writes to an object do not end each other's loops.
    const id = isChange ? write.id : `${write.id} created`;
    const earlier = this.#lastWrites.get(id);
    const created = isChange ? undefined : uid;
    // A write that changed nothing ends a loop. What no cache holds seems created.
    if (
      isChange
        ? before.metadata.resourceVersion === resourceVersion
        : earlier?.created === uid
    ) {
      this.#lastWrites.delete(id);
      return undefined;
    }
    const hash = textHash(after.sent);
    const again = earlier !== undefined && earlier.hash === hash &&
      now - waited - earlier.at <= LOOP_WINDOW_MS;
    const times = again ? earlier.times + 1 : 1;
    const last = { hash, times, at: now, created };
    this.#lastWrites.set(id, earlier ? Object.assign(earlier, last) : last);
    if (times < LOOP_WRITES) return undefined;
    const since = times - LOOP_WRITES + 1;
    return {
      times,
      fields: isChange
        ? changedFields(before, after.object).slice(0, MAX_FIELDS)
        : [],
      pause: pauseAfter(
        prefix === undefined ? since : Math.ceil(since / MADE_A_PAUSE),
        PAUSE,
      ),
    };
  }
}

/** Status field that another writer changes between the writes of a controller. */
export interface FieldFight {
  /** Path of the field, such as `.status.phase`. */
  readonly field: string;
  /** Name of the other field manager; undefined if the server does not say. */
  readonly manager: string | undefined;
  /** Number of consecutive writes that found the field changed. */
  readonly times: number;
}

/** Last write of the status of an object; the next one reuses it. */
interface WrittenStatus {
  /** JSON of the status after the write. */
  json: string;
  /** Number of writes in a row that found a field changed, by JSON pointer. */
  contested: ReadonlyMap<string, number> | undefined;
}

/**
 * Detector of status fields that others change between a controller's writes.
 */
export class FieldFightDetector {
  readonly #written: LatestMap<WrittenStatus> = new LatestMap(
    MIN_TARGETS,
    SAMPLED_STATUSES,
  );
  readonly #fieldManager: string;
  /** Whether any write has found a field changed. */
  #isContested = false;

  /** Creates a detector for the field manager of a controller. */
  constructor(fieldManager: string) {
    this.#fieldManager = fieldManager;
  }

  /** Whether the next write of an object may reveal a fight. */
  isNear(idOf: () => string): boolean {
    if (!this.#isContested) return false;
    const { contested } = this.#written.get(idOf()) ?? {};
    return [...contested?.values() ?? []].includes(LOOP_WRITES - 1);
  }

  /** Records a write of a status; returns a field fight when it is first detected. */
  observe(
    id: string,
    { before, after, live }: Pick<StoredWrite, "after" | "before" | "live">,
  ): FieldFight | undefined {
    const was = statusOf(before);
    if (was === undefined) {
      this.#written.delete(id);
      return undefined;
    }
    const json = after.statusJson ?? "{}";
    const last = this.#written.get(id);
    const isSame = last === undefined || last.json === JSON.stringify(was);
    const wrote: unknown = isSame ? was : JSON.parse(last.json);
    if (isSame || jsonEquals(wrote, was)) {
      const written = { json, contested: undefined };
      this.#written.set(id, last ? Object.assign(last, written) : written);
      return undefined;
    }
    this.#isContested = true;
    const contested = new Map<string, number>();
    let fight: FieldFight | undefined;
    for (const { path } of diffJsonPatch(was, JSON.parse(json))) {
      if (jsonEquals(valueAt(wrote, path), valueAt(was, path))) continue;
      const times = (last.contested?.get(path) ?? 1) + 1;
      contested.set(path, times);
      if (times !== LOOP_WRITES) continue;
      const manager = live?.metadata.managedFields?.find((entry) =>
        entry.manager !== this.#fieldManager &&
        owns(entry.fieldsV1, ["status", ...pointerSteps(path)])
      )?.manager;
      fight ??= { field: `.status.${fieldOf(path)}`, manager, times };
    }
    this.#written.set(id, { json, contested });
    return fight;
  }
}

/** Status of an object; undefined if no cache keeps it. */
function statusOf(object: KubernetesObject | undefined): object | undefined {
  if (object === undefined) return undefined;
  const field = Object.getOwnPropertyDescriptor(object, "status");
  return field === undefined ? {} : field.value as object | undefined;
}

/** Whether `fieldsV1` contains a path; items of lists count as the list. */
function owns(fields: unknown, steps: readonly string[]): boolean {
  let part = fields as Record<string, unknown> | undefined;
  for (const step of steps) {
    const next = part?.[`f:${step}`];
    if (next === undefined) {
      return part !== undefined &&
        !Object.keys(part).some((name) => name.startsWith("f:"));
    }
    part = next as Record<string, unknown>;
  }
  return part !== undefined;
}

/**
 * Observer of the writes of runs: lists them in their run, and delays objects
 * whose runs repeat the same write.
 */
export class WriteObserver {
  readonly #detector: WriteLoopDetector = new WriteLoopDetector();
  readonly #fights: FieldFightDetector;
  readonly #primaryKind: Kind;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #labels: MetricLabels;
  readonly #loops: Counter;
  readonly #keepsChanges: boolean;

  constructor(
    { controller, kind, fieldManager, clock, log, metrics, keepsChanges }: {
      readonly controller: string;
      readonly kind: Kind;
      readonly fieldManager: string;
      readonly clock: Clock;
      readonly log: Logger;
      readonly metrics: Metrics;
      /** Whether runs record the fields that their writes changed. */
      readonly keepsChanges: boolean;
    },
  ) {
    this.#primaryKind = kind;
    this.#keepsChanges = keepsChanges;
    this.#fights = new FieldFightDetector(fieldManager);
    this.#clock = clock;
    this.#log = log;
    this.#labels = Object.freeze({ controller });
    this.#loops = metrics.counter({
      name: "coracle_write_loops_total",
      help: "Writes that repeated an earlier one that did not last.",
      labels: ["controller"],
    });
    this.#loops.add(0, this.#labels); // An alert sees no growth of a new series.
  }

  /** Whether a write of a status needs the object with its managed fields. */
  needsLive(kind: Kind, object: ObjectKey): boolean {
    return this.#fights.isNear(() => this.#idOf(kind, keyText(object)));
  }

  /** Text that identifies an object; that of a primary is the queue's own key. */
  #idOf(kind: Kind, key: string): string {
    return sameKind(kind, this.#primaryKind) ? key : `${kindText(kind)} ${key}`;
  }

  /**
   * Records a write of a run.
   *
   * @returns Field fight that the write has revealed; undefined if absent.
   */
  observe<P extends KubernetesObject>(
    run: Run<P>,
    write: StoredWrite,
  ): FieldFight | undefined {
    const { verb, subresource, kind, before, after, isStatus, prefix } = write;
    const { key } = run;
    const written = after.keyText === key ? key : after.keyText;
    const object = this.#idOf(kind, prefix === undefined ? written : prefix);
    // A write may revert an earlier one of the run: each has a number.
    const alike = run.wrote({
      verb,
      subresource,
      kind,
      key: written,
      changes: this.#keepsChanges && before && prunedField(before) === undefined
        ? writeChanges(kind, before, after.object)
        : undefined,
    });
    const earlier = prefix === undefined ? alike : run.generated++;
    const id = object === key && subresource !== undefined
      ? key
      : `${key} ${verb} ${object} ${earlier}`;
    const target = () => `${kindText(kind)} ${written}`;
    const now = run.wroteAt = this.#clock.now();
    const { waited } = run;
    const observed = { id, before, after, now, waited, prefix };
    const loop = this.#detector.observe(observed);
    if (loop !== undefined) {
      run.pause = Math.max(run.pause, loop.pause);
      this.#loops.add(1, this.#labels);
      this.#log.warn(
        prefix !== undefined
          ? "Runs create another object with a generated name each time: if they need only one, look for it before"
          : loop.fields.length === 0
          ? "Runs create the same object repeatedly: something deletes it each time"
          : "Runs repeat the same write: another client or write reverts it, or the server stores it in another form",
        { object: key, target: target(), ...loop },
      );
    }
    const fight = isStatus ? this.#fights.observe(object, write) : undefined;
    if (fight !== undefined) {
      this.#log.warn(
        "A status field changes after each write: another writer changes it, too",
        { object: key, target: target(), ...fight },
      );
    }
    return fight;
  }
}
