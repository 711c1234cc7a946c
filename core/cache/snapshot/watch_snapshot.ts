import type { KubernetesObject } from "../../api/object.ts";
import { keyText, type ObjectKey, parseKey } from "../../api/object_key.ts";
import type { Clock } from "../../clock.ts";
import { NO_BYTES, parseRange, rangeText } from "../../json/byte_range.ts";
import type { Logger } from "../../logger.ts";
import type { PageEntry } from "../store/adopted_page.ts";
import type { ObjectStore, StoreFollower } from "../store/object_store.ts";
import type { PageDictionary } from "../store/page_codec.ts";
import {
  keepBudget,
  pauseIfDue,
  type ReceiveDeps,
  TimeSlice,
} from "../watch/receive.ts";
import { FrameDraft } from "./frame_draft.ts";
import {
  encodeBasis,
  EntryReader,
  type FrameFacts,
  readBasis,
  readFacts,
  readPage,
} from "./page_record.ts";
import { SlotSet } from "./slot_set.ts";
import {
  type FoundSnapshot,
  readSnapshot,
  ReplacedError,
  SnapshotFile,
} from "./snapshot_file.ts";
import {
  BASIS,
  COMMIT,
  DELETE,
  FACTS,
  FrameComposer,
  type FramePlace,
  type FrameRecord,
  PAGE,
  PENDING,
  type Pending,
  type ReadAt,
  readMemory,
  readRecords,
  recordsOf,
  type RefusalReason,
  SnapshotRefusal,
  VERSION,
} from "./snapshot_format.ts";

/** Growth after which a file is rewritten: twice the live bytes, and this much. */
const SPARE_BYTES = 1024 * 1024;
/** A rewrite takes at most one part in so many of the time. */
const REWRITE_SHARE = 50;
/** Pause after a failed write. */
const FAILURE_PAUSE_MS = 5 * 60_000;
/** Number of passes over the changes after which the last one takes one turn. */
const MAX_PASSES = 10;
/** Number of keys that wait for a run, of a controller, that are named. */
const MAX_PENDING = 10_000;
/** Number of deleted keys that wait to be written. */
const MAX_REMOVED = 10_000;
/** Number of objects from which on their pages have a dictionary. */
const MIN_DICTIONARY_OBJECTS = 64;

/** Key of an entry as text. */
function keyOfEntry({ namespace, name }: PageEntry): string {
  return keyText({ namespace: rangeText(namespace), name: rangeText(name) });
}

export interface WatchSnapshotDeps {
  readonly path: string;
  /** What the file must be of: cluster, kind, selection and form, as JSON. */
  readonly identity: string;
  readonly store: ObjectStore<KubernetesObject>;
  /**
   * Version up to which the store has all changes; empty while a whole state is
   * read.
   */
  readonly version: () => string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Runs work that reads the file or writes to it, one after the other. */
  readonly inTurn: (work: () => Promise<void>) => Promise<void>;
  readonly onRestored: (objects: number) => void;
  readonly onRefused: (reason: RefusalReason) => void;
  readonly onFailed: () => void;
  /** Called if a restored object cannot be read, once until all were listed again. */
  readonly onDamaged: (error: unknown) => void;
  readonly onClosed: () => void;
}

/** What a restore gives: called with the objects of the snapshot, each once. */
export interface RestoreTarget {
  /** Called before the first object; not called if there is no snapshot to use. */
  begin(): void;
  /** Called after each object was added to the store, with its slot. */
  take(slot: number): void;
}

/** State of the last whole group, from the newest frame to the oldest. */
interface Restored {
  readonly version: string;
  readonly pending: Pending;
  readonly objects: number;
  /** Size of the file if it had live objects only. */
  readonly liveBytes: number;
}

/**
 * Snapshot of a watch in a file: the objects of its store, and the version from
 * which the watch resumes after a restart.
 *
 * The file is a log. Each {@linkcode WatchSnapshot.flush} appends the present state
 * of the objects that changed since the last one, in short slices; what changes
 * during that is appended as well, until nothing is left in the event-loop turn in which the
 * version is read. So a group of frames has exactly the state of its version, and
 * perhaps newer states of own writes, which the watch then shows as known.
 */
export class WatchSnapshot implements StoreFollower {
  readonly #deps: WatchSnapshotDeps;
  /** Slots and keys that changed since they were written. */
  readonly #changed: SlotSet = new SlotSet();
  readonly #removed: Set<string> = new Set();
  /** Slots whose objects are as they were restored. */
  readonly #asRestored: SlotSet = new SlotSet();
  readonly #providers: Map<string, () => Iterable<string>> = new Map();
  #restored: Restored | undefined;
  #isRestoring = false;
  #isDamaged = false;
  #pendingKeys: Map<string, ReadonlySet<string> | true> = new Map();
  /** Number of changes since the restore. */
  #news = 0;
  #file: SnapshotFile | undefined;
  /** File that was restored, until the first write takes it over. */
  #found: FoundSnapshot | undefined;
  /** Dictionary of the pages of the file. */
  #dictionary: PageDictionary;
  #liveBytes = 0;
  #rewriteFrom = -Infinity;
  /** Version and pending keys of the last group. */
  #written = "";
  #writtenAt: number | undefined;
  #isLost = false;
  #isAsked = false;
  #isClosed = false;

  constructor(deps: WatchSnapshotDeps) {
    this.#deps = deps;
  }

  /** Whether the watch began with a snapshot. */
  get isRestored(): boolean {
    return this.#restored !== undefined;
  }

  /**
   * Whether a restored object could not be read: the whole state must be read again,
   * and what cannot be read is replaced.
   */
  get isDamaged(): boolean {
    return this.#isDamaged;
  }

  /** Number of changes of the store since the restore. */
  get news(): number {
    return this.#news;
  }

  /** Size of the file, in bytes. */
  get bytes(): number {
    return this.#file?.size ?? this.#found?.end ?? 0;
  }

  /** Time since the file was last up to date, in milliseconds; undefined if never. */
  get age(): number | undefined {
    return this.#writtenAt === undefined
      ? undefined
      : this.#deps.clock.now() - this.#writtenAt;
  }

  /** This snapshot, if the object in a slot is as it was restored. */
  ofRestored(slot: number): this | undefined {
    return this.#asRestored.has(slot) ? this : undefined;
  }

  /**
   * Whether an object was idle in a controller when the snapshot was written; false
   * for a controller that the snapshot does not know.
   */
  wasIdle(controller: string, key: string): boolean {
    const keys = this.#pendingKeys.get(controller);
    return keys !== undefined && keys !== true && !keys.has(key);
  }

  /**
   * Adds a controller whose objects wait for runs, among them those of this watch.
   *
   * @returns Function that removes it.
   */
  addPending(controller: string, keys: () => Iterable<string>): () => void {
    this.#providers.set(controller, keys);
    return () => {
      if (this.#providers.get(controller) !== keys) return;
      this.#providers.delete(controller);
    };
  }

  written(slot: number): void {
    this.#news++;
    this.#asRestored.delete(slot);
    this.#changed.add(slot);
    // A deletion after the new object would hide it: the newest record counts.
    if (this.#removed.size > 0) this.#removed.delete(this.#keyAt(slot));
  }

  /** Key of the object in a used slot, as text. */
  #keyAt(slot: number): string {
    return keyText(this.#deps.store.keyAt(slot) as ObjectKey);
  }

  unreadable(slot: number, error: unknown): void {
    // What the server sent like this, it would send like this again.
    const isOurs = this.#isRestoring || this.#asRestored.has(slot);
    if (this.#isDamaged || !isOurs) return;
    this.#isDamaged = true;
    this.#deps.onDamaged(error);
  }

  /** Notes that all was listed again since the snapshot was found to be damaged. */
  repaired(): void {
    this.#isDamaged = false;
    this.#asRestored.clear();
  }

  removed(slot: number): void {
    this.#news++;
    this.#asRestored.delete(slot);
    this.#changed.delete(slot);
    this.#removed.add(this.#keyAt(slot));
    if (this.#removed.size < MAX_REMOVED || this.#isAsked) return;
    this.#isAsked = true;
    void this.flush().finally(() => this.#isAsked = false);
  }

  /**
   * Restores the snapshot: adds each object of its last whole group to the store,
   * with its compressed page, which is not read.
   *
   * @returns Version from which the watch resumes; undefined if there is no
   * snapshot that can be used, which is logged and counted. What was given before
   * a failure must be replaced by a list.
   */
  async restore(
    target: RestoreTarget,
    receiving: ReceiveDeps,
  ): Promise<string | undefined> {
    const { path, identity, log, onRefused, onRestored } = this.#deps;
    let version: string | undefined;
    await this.#deps.inTurn(async () => {
      this.#isRestoring = true;
      try {
        const found = await readSnapshot(
          path,
          identity,
          (readAt, { frames, end }) =>
            this.#restore(readAt, { frames, end, target, receiving }),
        );
        if (found === undefined) return;
        if (found.isTorn) {
          log.warn("The end of a snapshot is damaged and is not used", {
            path,
          });
        }
        const { version: reached, pending, objects } = found.result;
        for (const [controller, keys] of Object.entries(pending)) {
          const known = keys === true ? true : new Set(keys);
          this.#pendingKeys.set(controller, known);
        }
        this.#restored = found.result;
        this.#found = found;
        this.#liveBytes = found.result.liveBytes;
        this.#news = 0;
        onRestored(objects);
        log.info("A snapshot was restored", { objects, version: reached });
        version = reached;
      } catch (error) {
        receiving.signal.throwIfAborted();
        this.#asRestored.clear();
        this.#pendingKeys.clear();
        const reason = error instanceof SnapshotRefusal
          ? error.reason
          : "unreadable";
        onRefused(reason);
        log.warn("A snapshot is not used, so that the objects are listed", {
          path,
          reason,
          error,
        });
      } finally {
        this.#isRestoring = false;
      }
    });
    return version;
  }

  /** Adds the objects, from the newest frame to the oldest. */
  async #restore(
    readAt: ReadAt,
    { frames, end, target, receiving }: {
      readonly frames: readonly FramePlace[];
      readonly end: number;
      readonly target: RestoreTarget;
      readonly receiving: ReceiveDeps;
    },
  ): Promise<Restored> {
    const { store } = this.#deps;
    const deleted = new Set<string>();
    let version: string | undefined;
    let pending: Pending | undefined;
    let objects = 0;
    let bytes = 0;
    let live = 0;
    // One frame is read while the other one is used.
    const longest = frames.reduce(
      (most, { length }) => Math.max(most, length),
      0,
    );
    const memories = [readMemory(longest), readMemory(longest)];
    const load = (index: number) => {
      const place = frames[index];
      const raw = place && readRecords(readAt, place, memories[index & 1]);
      raw?.catch(() => {}); // it is awaited after the frame before it
      return raw;
    };
    const entries = new EntryReader();
    const take = (record: FrameRecord, facts: FrameFacts) => {
      const { definitions, isRegular } = facts;
      const read = readPage(record);
      const { page, written } = read;
      entries.begin(read, definitions.length);
      if (!page.isPlain && this.#dictionary === undefined) {
        throw new SnapshotRefusal("damaged", "a page has no dictionary");
      }
      if (!isRegular) store.markIrregular();
      const before = objects;
      store.adopt(
        { page, definitions, entries },
        (entry) => deleted.size === 0 || !deleted.has(keyOfEntry(entry)),
        (slot) => {
          objects++;
          this.#asRestored.add(slot);
          target.take(slot);
        },
      );
      const length = record.end - record.start;
      bytes += length;
      live += length * (objects - before) / Math.max(written, 1);
    };
    const [basis] = recordsOf(await load(0) ?? NO_BYTES);
    if (basis?.type !== BASIS) {
      throw new SnapshotRefusal("damaged", "it has no dictionary");
    }
    const dictionary = this.#dictionary = readBasis(basis);
    if (dictionary !== undefined) store.pages.adoptDictionary(dictionary);
    target.begin();
    let next = load(frames.length - 1);
    for (let index = frames.length - 1; index > 0; index--) {
      const records = recordsOf(await next as Uint8Array);
      next = load(index - 1);
      const [first] = records;
      if (first?.type !== FACTS) {
        throw new SnapshotRefusal("damaged", "a frame has no facts");
      }
      const facts = readFacts(first);
      if (index === frames.length - 1) store.slots.reserve(facts.objects ?? 0);
      for (let at = records.length - 1; at > 0; at--) {
        const record = records[at] as FrameRecord;
        if (record.type === PAGE) take(record, facts);
        else if (record.type === DELETE) {
          const key = rangeText(record);
          if (!store.has(parseKey(key))) deleted.add(key);
        } else if (record.type === VERSION) version ??= rangeText(record);
        else if (record.type === PENDING) {
          pending ??= parseRange(record) as Pending;
        }
        const pause = pauseIfDue(record.end - record.start, receiving);
        if (pause !== undefined) await pause;
      }
      await keepBudget(receiving);
    }
    if (version === undefined || pending === undefined) {
      throw new SnapshotRefusal("damaged", "it has no version");
    }
    const liveBytes = bytes === 0 ? end : end * live / bytes;
    return { version, pending, objects, liveBytes };
  }

  /**
   * Appends what changed since the last flush. A failure is logged and counted; the
   * whole file is then rewritten, later.
   */
  async flush(): Promise<void> {
    await this.#deps.inTurn(async () => {
      if (this.#isLost || this.#isClosed) return;
      try {
        await this.#flush();
      } catch (error) {
        await this.#fail(error);
      }
    });
  }

  /** Writes what is left to write, and ends the snapshot. */
  async close(): Promise<void> {
    await this.flush();
    this.#isClosed = true;
    this.#deps.onClosed();
    await this.#file?.discard();
  }

  async #flush(): Promise<void> {
    const { version, clock } = this.#deps;
    const reached = version();
    if (reached === "") return;
    const isSame = this.#changed.size === 0 && this.#removed.size === 0 &&
      this.#written === this.#commitText(reached);
    if (isSame) {
      this.#writtenAt = clock.now();
      return;
    }
    const began = clock.now();
    const file = await this.#target(began);
    if (file === undefined) return;
    await file.open();
    try {
      await this.#append(file, began);
    } finally {
      if (!file.isNew) await file.close();
    }
  }

  /** File to append to; undefined while a rewrite must wait. */
  async #target(now: number): Promise<SnapshotFile | undefined> {
    const { path, identity, store, clock } = this.#deps;
    const found = this.#found;
    if (found !== undefined) {
      this.#found = undefined;
      this.#file = await SnapshotFile.takeOver(path, found);
    }
    const file = this.#file;
    const isLarge = file !== undefined && !file.isNew &&
      file.size > 2 * this.#liveBytes + SPARE_BYTES;
    if (file !== undefined && !isLarge) return file;
    if (now < this.#rewriteFrom) return file;
    if (store.size >= MIN_DICTIONARY_OBJECTS) store.pages.ensureDictionary();
    await file?.discard();
    this.#file = undefined;
    const created = await SnapshotFile.create(path, identity);
    this.#file = created;
    this.#dictionary = store.pages.dictionary;
    const basis = new FrameComposer();
    const bytes = encodeBasis(this.#dictionary);
    basis.add(BASIS, { bytes, start: 0, end: bytes.length });
    await created.write(basis, 0);
    this.#removed.clear();
    const slice = new TimeSlice(clock);
    for (
      let slot = store.nextSlot(0);
      slot >= 0;
      slot = store.nextSlot(slot + 1)
    ) {
      this.#changed.add(slot);
      if (slice.step(0)) await slice.pause();
    }
    return created;
  }

  async #append(file: SnapshotFile, began: number): Promise<void> {
    const { store, version, clock } = this.#deps;
    const slice = new TimeSlice(clock);
    const begin = () => new FrameDraft(store, this.#dictionary);
    let draft = begin();
    const full: FrameDraft[] = [];
    const write = async (one: FrameDraft) =>
      await file.write(await one.compose(), 0);
    let passes = 0;
    while (this.#changed.size > 0 || this.#removed.size > 0) {
      const isLast = ++passes > MAX_PASSES;
      const next = async () => {
        const done = draft;
        draft = begin();
        await write(done);
        slice.begin();
      };
      for (const key of this.#removed) {
        this.#removed.delete(key);
        draft.addText(DELETE, key);
        if (draft.isFull && !isLast) await next();
      }
      for (
        let slot = this.#changed.next(0);
        slot >= 0;
        slot = this.#changed.next(slot + 1)
      ) {
        const isDue = slice.step(draft.add(slot, this.#changed));
        if (isLast) {
          if (!draft.isFull) continue;
          full.push(draft);
          draft = begin();
        } else if (draft.isFull) await next();
        else if (isDue) await slice.pause();
      }
    }
    // In the turn in which nothing was left: this is the state of the version.
    const reached = version();
    const text = reached === "" ? "" : this.#commitText(reached);
    for (const one of full) await write(one);
    if (text === "") {
      // A whole state is being read: the group ends with a later flush.
      if (!draft.isEmpty) await write(draft);
      return;
    }
    draft.addText(VERSION, reached);
    draft.addText(PENDING, text.slice(reached.length));
    await file.write(await draft.compose(), COMMIT);
    if (file.isNew) {
      await file.settle();
      const now = clock.now();
      this.#liveBytes = file.size;
      this.#rewriteFrom = now + REWRITE_SHARE * (now - began);
    }
    this.#written = text;
    this.#writtenAt = clock.now();
  }

  /** Version and pending keys, as text. */
  #commitText(version: string): string {
    const pending: Record<string, string[] | true> = {};
    for (const [controller, keys] of this.#providers) {
      const named: string[] = [];
      pending[controller] = named;
      for (const key of keys()) {
        if (named.push(key) <= MAX_PENDING) continue;
        pending[controller] = true;
        break;
      }
    }
    return version + JSON.stringify(pending);
  }

  async #fail(error: unknown): Promise<void> {
    const { clock, log, path, onFailed } = this.#deps;
    await this.#file?.discard();
    this.#file = this.#found = undefined;
    if (error instanceof ReplacedError) {
      this.#isLost = true;
      log.warn(
        "A snapshot is no longer written: give each replica a folder of its own",
        { path, error },
      );
      return;
    }
    onFailed();
    this.#rewriteFrom = clock.now() + FAILURE_PAUSE_MS;
    log.warn("Cannot write a snapshot, which is tried again later", {
      path,
      error,
    });
  }
}
