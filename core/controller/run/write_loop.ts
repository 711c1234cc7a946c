import { type Kind, kindText } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import type { Clock } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { Counter, MetricLabels, Metrics } from "../../metrics.ts";
import { diffJsonPatch } from "../../patch/json_patch.ts";
import type { Run } from "./run.ts";

/** Write that the server has stored. */
export interface StoredWrite {
  /** Verb for people: `apply`, `patch` and so on. */
  readonly verb: string;
  readonly kind: Kind;
  /** Body that was sent. */
  readonly body: unknown;
  /** Object before the write; undefined if no cache held it. */
  readonly before: KubernetesObject | undefined;
  /** Object that the server answered with. */
  readonly after: KubernetesObject;
}

/** Stored write of the run of a primary. */
interface ObservedWrite extends Omit<StoredWrite, "verb"> {
  /** Key of the primary. */
  readonly key: string;
  /** Time by the clock of the controller, in milliseconds. */
  readonly now: number;
}

/** Loop of writes: runs repeat a write that does not last. */
export interface WriteLoop {
  /** Object that is written, such as `v1 ConfigMap default/web`. */
  readonly target: string;
  /** Number of consecutive identical writes. */
  readonly times: number;
  /** Fields that change with every write, at most five. */
  readonly fields: readonly string[];
  /** Pause before the next run of the primary, in milliseconds. */
  readonly pause: number;
}

/** Number of consecutive identical writes that count as a loop. */
const LOOP_WRITES = 5;
/** Longest time between two writes of a loop. */
const LOOP_WINDOW_MS = 60_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
/** Number of targets in memory; the least recently written one is removed. */
const MAX_TARGETS = 2_000;
/** Number of fields that a loop lists. */
const MAX_FIELDS = 5;

/** Latest write to a target. */
interface LastWrite {
  /** Hash of the body. */
  readonly hash: number;
  /** Number of consecutive identical writes. */
  readonly times: number;
  /** Time by the clock of the controller, in milliseconds. */
  readonly at: number;
}

/**
 * Detector of runs that repeat the same write, each time with an effect: another
 * client reverts the fields, or the server stores them in another form. Without a
 * pause the two would go on indefinitely.
 */
export class WriteLoopDetector {
  readonly #lastWrites: Map<string, LastWrite> = new Map();

  /**
   * Records a write.
   *
   * @returns The loop that the write is part of; undefined if absent.
   */
  observe(write: ObservedWrite): WriteLoop | undefined {
    const { key, kind, before, after, now } = write;
    const target = `${kindText(kind)} ${keyText(keyOf(after))}`;
    const id = `${key} ${target}`;
    const { resourceVersion } = after.metadata;
    // A write that changed nothing or created the object ends a loop.
    if (
      before === undefined || before.metadata.uid !== after.metadata.uid ||
      before.metadata.resourceVersion === resourceVersion
    ) {
      this.#lastWrites.delete(id);
      return undefined;
    }
    const hash = hashOf(JSON.stringify(write.body));
    const earlier = this.#lastWrites.get(id);
    const again = earlier !== undefined && earlier.hash === hash &&
      now - earlier.at <= LOOP_WINDOW_MS;
    const times = again ? earlier.times + 1 : 1;
    this.#lastWrites.delete(id);
    this.#lastWrites.set(id, { hash, times, at: now });
    if (this.#lastWrites.size > MAX_TARGETS) {
      const [oldest] = this.#lastWrites.keys();
      this.#lastWrites.delete(oldest as string);
    }
    if (times < LOOP_WRITES) return undefined;
    return {
      target,
      times,
      fields: changedFields(before, after),
      pause: Math.min(
        FIRST_PAUSE_MS * 2 ** (times - LOOP_WRITES),
        LONGEST_PAUSE_MS,
      ),
    };
  }
}

/**
 * Observer of the writes of runs: lists them in their run, and delays objects
 * whose runs repeat the same write.
 */
export class WriteObserver {
  readonly #detector: WriteLoopDetector = new WriteLoopDetector();
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #labels: MetricLabels;
  readonly #loops: Counter;

  constructor({ controller, clock, log, metrics }: {
    readonly controller: string;
    readonly clock: Clock;
    readonly log: Logger;
    readonly metrics: Metrics;
  }) {
    this.#clock = clock;
    this.#log = log;
    this.#labels = Object.freeze({ controller });
    this.#loops = metrics.counter({
      name: "coracle_write_loops_total",
      help: "Writes that repeated an earlier one that did not last.",
    });
  }

  /** Records a write of a run. */
  observe<P extends KubernetesObject>(run: Run<P>, write: StoredWrite): void {
    const { verb, kind, after } = write;
    const { key } = run;
    run.wrote(`${verb} ${kindText(kind)} ${keyText(keyOf(after))}`);
    const now = this.#clock.now();
    const loop = this.#detector.observe({ ...write, key, now });
    if (loop === undefined) return;
    run.pause = Math.max(run.pause, loop.pause);
    this.#loops.add(1, this.#labels);
    this.#log.warn(
      "Runs repeat the same write: another client reverts it, or the server stores it in another form",
      { object: key, ...loop },
    );
  }
}

/** Paths of the fields that differ, without those that every write changes. */
function changedFields(
  before: KubernetesObject,
  after: KubernetesObject,
): readonly string[] {
  const plain = ({ metadata, ...fields }: KubernetesObject) => {
    const {
      managedFields: _managedFields,
      resourceVersion: _resourceVersion,
      generation: _generation,
      ...others
    } = metadata;
    return { ...fields, metadata: others };
  };
  const paths = diffJsonPatch(plain(before), plain(after)).map(({ path }) =>
    path.slice(1).replaceAll("/", ".").replaceAll("~1", "/")
      .replaceAll("~0", "~")
  );
  return [...new Set(paths)].slice(0, MAX_FIELDS);
}

/** FNV-1a hash of a text. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}
