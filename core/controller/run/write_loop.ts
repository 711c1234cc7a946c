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

/** Says that a run repeats a write that does not last. */
export interface WriteLoop {
  /** What is written, for people: `v1 ConfigMap default/web`. */
  readonly target: string;
  /** How often the same was written in a row. */
  readonly times: number;
  /** The fields that change with every write, as far as they are known. */
  readonly fields: readonly string[];
  /** For how long the primary should not run, in milliseconds. */
  readonly pause: number;
}

/** How often the same write in a row is taken for a loop. */
const LOOP = 5;
/** Writes further apart than this are no loop, in milliseconds. */
const WINDOW = 60_000;
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 60_000;
/** How many targets are followed; the longest unseen one is forgotten. */
const MOST_TARGETS = 2_000;
/** How many fields a loop names. */
const MOST_FIELDS = 5;

interface Followed {
  hash: number;
  times: number;
  last: number;
}

/**
 * Finds runs that write the same again and again, each time with effect: somebody
 * else sets the fields back, or the server stores them in another form. Left
 * alone, the two would keep each other busy for ever.
 */
export class WriteLoopDetector {
  readonly #followed: Map<string, Followed> = new Map();

  /**
   * Takes a write into account.
   *
   * @returns The loop, if this write is part of one.
   */
  observe(write: ObservedWrite): WriteLoop | undefined {
    const { key, kind, before, after, now } = write;
    const target = `${kindText(kind)} ${keyText(keyOf(after))}`;
    const id = `${key} ${target}`;
    const { resourceVersion } = after.metadata;
    // A write that changed nothing, and one that made the object, end a loop.
    if (
      before === undefined || before.metadata.uid !== after.metadata.uid ||
      before.metadata.resourceVersion === resourceVersion
    ) {
      this.#followed.delete(id);
      return undefined;
    }
    const hash = hashOf(JSON.stringify(write.body));
    const earlier = this.#followed.get(id);
    const again = earlier !== undefined && earlier.hash === hash &&
      now - earlier.last <= WINDOW;
    const times = again ? earlier.times + 1 : 1;
    this.#followed.delete(id);
    this.#followed.set(id, { hash, times, last: now });
    if (this.#followed.size > MOST_TARGETS) {
      const [oldest] = this.#followed.keys();
      this.#followed.delete(oldest as string);
    }
    if (times < LOOP) return undefined;
    return {
      target,
      times,
      fields: changedFields(before, after),
      pause: Math.min(FIRST_PAUSE * 2 ** (times - LOOP), LONGEST_PAUSE),
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

  /** @param deps Its dependencies. */
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

/** Which fields differ, without those that every write changes. */
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
  return [...new Set(paths)].slice(0, MOST_FIELDS);
}

/** A hash of a text (FNV-1a). */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}
