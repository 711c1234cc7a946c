import { createHash } from "node:crypto";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { fieldSelectorText } from "../../api/field_selector.ts";
import { apiVersionOf, type Kind, kindText } from "../../api/kind.ts";
import { labelSelectorText } from "../../api/label_selector.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { type Clock, loadModule, type Timer } from "../../clock.ts";
import type { Logger } from "../../logger.ts";
import type { Counter, Gauge, Metrics } from "../../metrics.ts";
import type { ObjectStore } from "../store/object_store.ts";
import type { InformerSelection } from "../watch/watch_requests.ts";
import type { RefusalReason } from "./snapshot_format.ts";
import type { SnapshotSettings } from "./snapshot_options.ts";
import { WatchSnapshot } from "./watch_snapshot.ts";

const SUFFIX = ".snapshot";
/** Age from which on a file that nobody has written to is removed. */
const ABANDONED_MS = 7 * 24 * 60 * 60_000;

export interface SnapshotFolderDeps {
  readonly settings: SnapshotSettings;
  /** Identity of the cluster, which is never that of another one. */
  readonly cluster: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Watch that a snapshot is of. */
export interface SnapshotSubject {
  readonly kind: Kind;
  readonly namespace: string | undefined;
  readonly selection: InformerSelection;
  readonly store: ObjectStore<KubernetesObject>;
  /** See the dependencies of {@linkcode WatchSnapshot}. */
  readonly version: () => string;
  readonly onDamaged: (error: unknown) => void;
}

/**
 * Folder with the snapshots of the watches of an operator, one file for each.
 * They are written one after the other, so that a write takes the memory of one
 * frame and little of the event loop.
 */
export class SnapshotFolder {
  readonly #deps: SnapshotFolderDeps;
  readonly #excluded: ReadonlySet<string>;
  readonly #watches: Map<string, WatchSnapshot> = new Map();
  readonly #kinds: Map<WatchSnapshot, string> = new Map();
  readonly #refused: Counter;
  readonly #failed: Counter;
  readonly #restored: Gauge;
  /** Promise of the last work on a file. */
  #turn: Promise<void> = Promise.resolve();
  #timer: Timer | undefined;
  #isClosed = false;

  private constructor(deps: SnapshotFolderDeps) {
    const { settings, metrics } = deps;
    this.#deps = deps;
    this.#excluded = new Set(
      settings.exclude.map((kind) =>
        typeof kind === "string" ? kind : kindText(kind)
      ),
    );
    this.#refused = metrics.counter({
      name: "coracle_snapshot_refused_total",
      help:
        "Snapshots that were not used at a start, by kind and reason: their objects were listed.",
      labels: ["kind", "reason"],
    });
    this.#failed = metrics.counter({
      name: "coracle_snapshot_errors_total",
      help: "Failed writes of snapshots, by kind.",
      labels: ["kind"],
    });
    this.#restored = metrics.gauge({
      name: "coracle_snapshot_restored_objects",
      help: "Objects that the last start read from snapshots, by kind.",
      labels: ["kind"],
    });
    metrics.observableGauge({
      name: "coracle_snapshot_bytes",
      help: "Size of the snapshots, by kind.",
      labels: ["kind"],
    }, () => this.#byKind(({ bytes }) => bytes, (a, b) => a + b));
    metrics.observableGauge({
      name: "coracle_snapshot_age_seconds",
      help:
        "Time since the oldest snapshot of a kind was last up to date; absent before the first one.",
      labels: ["kind"],
    }, () =>
      this.#byKind(
        ({ age }) => age === undefined ? undefined : age / 1_000,
        Math.max,
      ));
  }

  /**
   * Opens a folder, and creates it if it does not exist.
   *
   * @throws {Error} If it cannot be used.
   */
  static async open(deps: SnapshotFolderDeps): Promise<SnapshotFolder> {
    const { settings: { path }, clock } = deps;
    try {
      await mkdir(path, { recursive: true, mode: 0o700 });
      for (const name of await readdir(path)) {
        const isOurs = name.endsWith(SUFFIX) || name.endsWith(`${SUFFIX}.new`);
        if (!isOurs) continue;
        const file = join(path, name);
        const { mtimeMs } = await stat(file);
        if (clock.wallTime() - mtimeMs > ABANDONED_MS) {
          await rm(file, { force: true });
        }
      }
    } catch (error) {
      throw new Error(
        `Cannot use the folder of snapshots: it must exist or be created, and be readable and writable: received ${error}`,
        { cause: error },
      );
    }
    return new SnapshotFolder(deps);
  }

  /**
   * Snapshot of a watch; undefined if its kind is not written: Secrets, kinds that
   * the user excludes, and caches that may keep keys only.
   */
  of(subject: SnapshotSubject): WatchSnapshot | undefined {
    const { kind, namespace, selection, store, version, onDamaged } = subject;
    const text = kindText(kind);
    const isSecret = kind.group === "" && kind.kind === "Secret";
    if (
      this.#isClosed || isSecret || selection.bounded === true ||
      this.#excluded.has(text)
    ) return undefined;
    const { cluster, clock, log, settings } = this.#deps;
    const { labelSelector, fieldSelector, prune } = selection;
    const identity = JSON.stringify({
      cluster,
      apiVersion: apiVersionOf(kind),
      kind: kind.kind,
      namespace: namespace ?? "",
      labelSelector: labelSelector === undefined
        ? ""
        : labelSelectorText(labelSelector),
      fieldSelector: fieldSelector === undefined
        ? ""
        : fieldSelectorText(fieldSelector),
      shardSelector: selection.shardSelector ?? "",
      metadataOnly: selection.metadataOnly === true,
      prune: [...prune ?? []].sort(),
    });
    const name = fileName(kind, namespace, identity);
    // A second informer of the same selection, which is not shared.
    if (this.#watches.has(name)) return undefined;
    const labels = { kind: text };
    const snapshot = new WatchSnapshot({
      path: join(settings.path, name),
      identity,
      store,
      version,
      onDamaged,
      clock,
      log: log.with({ kind: text, namespace }),
      inTurn: (work) => this.#inTurn(work),
      onRestored: (objects) => this.#restored.add(objects, labels),
      onRefused: (reason: RefusalReason) =>
        this.#refused.add(1, { ...labels, reason }),
      onFailed: () => this.#failed.add(1, labels),
      onClosed: () => {
        this.#watches.delete(name);
        this.#kinds.delete(snapshot);
      },
    });
    this.#watches.set(name, snapshot);
    this.#kinds.set(snapshot, text);
    this.#setTimer();
    return snapshot;
  }

  /** Writes what changed in all watches. */
  async flush(): Promise<void> {
    for (const watch of [...this.#watches.values()]) await watch.flush();
  }

  /** Ends the writes; the watches must be closed before. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    await this.#turn;
  }

  #setTimer(): void {
    const { clock, settings } = this.#deps;
    this.#timer ??= clock.setTimer(() => {
      void this.flush().finally(() => {
        this.#timer = undefined;
        if (!this.#isClosed && this.#watches.size > 0) this.#setTimer();
      });
    }, settings.every);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    // A virtual clock waits for it, as for a module.
    const done = loadModule(this.#turn.then(work));
    this.#turn = done.catch(() => {});
    return done;
  }

  #byKind(
    valueOf: (watch: WatchSnapshot) => number | undefined,
    join: (a: number, b: number) => number,
  ): { readonly value: number; readonly labels: { readonly kind: string } }[] {
    const values = new Map<string, number>();
    for (const [watch, kind] of this.#kinds) {
      const value = valueOf(watch);
      if (value === undefined) continue;
      const known = values.get(kind);
      values.set(kind, known === undefined ? value : join(known, value));
    }
    return Array.from(values, ([kind, value]) => ({ value, labels: { kind } }));
  }
}

/** Name of the file of a watch: for people, and different for each identity. */
function fileName(
  kind: Kind,
  namespace: string | undefined,
  identity: string,
): string {
  const digest = createHash("sha256").update(identity).digest("hex");
  const words = [kind.kind, kind.group, namespace ?? ""]
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase().replace(/[^a-z0-9.-]/g, "-"));
  return `${words.join("_").slice(0, 150)}_${digest.slice(0, 16)}${SUFFIX}`;
}
