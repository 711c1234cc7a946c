import { Buffer } from "node:buffer";
import type { Clock, Timer } from "@coracle/operator/client";
import type { ResponseStream, StreamWriter } from "../http/exchange.ts";
import type { GroupResource } from "../registry.ts";
import {
  needsWebhook,
  prepareSelection,
  type Selection,
  selects,
} from "../request/object_selection.ts";
import { settle } from "../settle.ts";
import { internalError, StatusError } from "../status.ts";
import type { Collection } from "../storage/collection.ts";
import type { Change, ChangeType } from "../storage/history.ts";
import { prepareObjects } from "../storage/object_view.ts";
import type { Store } from "../storage/store.ts";
import { StoredObject } from "../storage/stored_object.ts";
import {
  bookmarkFrame,
  errorFrame,
  formatKey,
  frame,
  type FrameFormat,
} from "./watch_frame.ts";

/** Counts of the watches of a server. */
interface WatchCounts {
  /** Number of open watches. */
  open: number;
  /** Number of watches closed because their client read too slowly. */
  dropped: number;
  /** Number of events sent to watches. */
  events: number;
}

/** Start of a watch. */
export type WatchStart =
  /**
   * Starts with the current state as ADDED events, optionally ended by a
   * bookmark.
   */
  | { readonly from: "state"; readonly endBookmark: boolean }
  /** Starts with the changes after a revision. */
  | { readonly from: "revision"; readonly revision: number }
  /** Ends immediately with an error. */
  | { readonly from: "error"; readonly error: StatusError };

/** Options of {@linkcode Watcher}. */
interface WatcherOptions {
  readonly hub: WatchHub;
  readonly clock: Clock;
  readonly collection: Collection;
  readonly selection: Selection;
  readonly format: FrameFormat;
  readonly start: WatchStart;
  /** Current revision of the store. */
  readonly revision: () => number;
  readonly bookmarks: boolean;
  /** Time limit of the watch, in milliseconds. */
  readonly timeout: number;
  /** Maximum unsent bytes, besides the initial events, before the client is disconnected. */
  readonly maxPending: number;
}

/** Cache of encoded events: encodes at most once per change and encoding. */
type SharedFrame = (form: string, make: () => Frame) => Frame;

/** Encoded events; a promise during a call of a conversion webhook. */
type Frame = Uint8Array | Promise<Uint8Array>;

/** Change as an event of one watch. */
interface WatchedEvent {
  readonly type: ChangeType;
  readonly object: StoredObject;
  /** Whether the object exists, but is no longer selected. */
  readonly hasLeft?: boolean;
}

const NOTHING = new Uint8Array();

/** Response stream of one watch, fed by the hub. */
export class Watcher implements ResponseStream {
  readonly #options: WatcherOptions;
  #writer: StreamWriter | undefined;
  #timer: Timer | undefined;
  /** Revision that was last sent to the client. */
  #revision = 0;
  /** Whether the column definitions were sent. */
  #described = false;
  #ended = false;
  /** Promise that resolves when all earlier events have been sent; undefined if none waits. */
  #waiting: Promise<void> | undefined;
  #stalled = false;
  /** Whether the events with which the watch starts are being written. */
  #isStarting = false;
  /** Unsent bytes of these events, for which a client cannot be too slow. */
  #backlog = 0;

  constructor(options: WatcherOptions) {
    this.#options = options;
  }

  get collection(): Collection {
    return this.#options.collection;
  }

  /** Revision that was last sent to the client, or from which it started. */
  get revision(): number {
    return this.#revision;
  }

  /** Namespace of the watch; undefined for all namespaces. */
  get namespace(): string | undefined {
    return this.#options.selection.namespace;
  }

  get resource(): GroupResource {
    return this.format.view.definition;
  }

  get format(): FrameFormat {
    return this.#options.format;
  }

  start(writer: StreamWriter): () => void {
    const { hub, clock, timeout } = this.#options;
    this.#writer = writer;
    this.#isStarting = true;
    const hasBegun = this.#begin();
    this.#isStarting = false;
    if (hasBegun) {
      hub.add(this);
      this.#timer = clock.setTimer(() => this.end(), timeout);
    }
    return () => this.#close();
  }

  /** Writes the initial events; returns false if the watch has failed. */
  #begin(): boolean {
    const { collection, selection, start, revision } = this.#options;
    if (start.from === "error") {
      this.fail(start.error);
      return false;
    }
    if (start.from === "revision") {
      this.#revision = start.revision;
      const { watchFloor } = collection.history;
      if (start.revision < watchFloor) {
        this.fail(
          new StatusError({
            code: 410,
            reason: "Expired",
            message:
              `too old resource version: ${start.revision} (${watchFloor})`,
          }),
        );
        return false;
      }
      for (const change of collection.history.since(start.revision)) {
        this.deliver(change, (_form, make) => make());
      }
      return !this.#ended;
    }
    const { namespace } = selection;
    const candidates = collection.scan({ namespace });
    const selected = () =>
      candidates.filter((object) => selects(selection, object));
    if (this.format.view.definition.prepareConversion) {
      this.#write(settle(() => {
        prepareSelection(candidates, selection);
        const objects = selected();
        prepareObjects(objects, this.format.view);
        return Buffer.concat(
          objects.map((object) => this.#encode("ADDED", object)),
        );
      }));
    } else {
      for (const object of selected()) {
        if (this.#ended) return false;
        this.#write(this.#frame("ADDED", object));
      }
    }
    this.#revision = revision();
    if (start.endBookmark) this.#bookmark(true);
    return !this.#ended;
  }

  /** Sends a change if it matches the watch. */
  deliver(change: Change, shared: SharedFrame): void {
    if (change.revision <= this.#revision || this.#ended) return;
    this.#revision = change.revision;
    if (!needsWebhook(this.#options.selection)) {
      const event = this.#eventOf(change);
      if (event !== undefined) this.#show(event, shared);
      return;
    }
    this.#write(settle(() => {
      const event = this.#eventOf(change);
      if (event === undefined) return NOTHING;
      const bytes = this.#encode(event.type, event.object);
      this.#options.hub.counts.events++;
      return bytes;
    }));
  }

  /** Event that a change is for the watch; undefined if it does not match. */
  #eventOf(
    { type, object, previous, revision }: Change,
  ): WatchedEvent | undefined {
    const { selection } = this.#options;
    const before = previous !== undefined && selects(selection, previous);
    if (type === "DELETED") return before ? { type, object } : undefined;
    if (selects(selection, object)) {
      return { type: before ? "MODIFIED" : "ADDED", object };
    }
    if (!before) return undefined;
    // The object left the selection: the client receives its last matching
    // state at the revision at which it left.
    const left = new StoredObject(previous.definition, previous.parse(), {
      revision,
      current: previous.current,
    });
    return { type: "DELETED", object: left, hasLeft: true };
  }

  #show({ type, object, hasLeft }: WatchedEvent, shared: SharedFrame): void {
    const undescribed = this.format.representation.as === "Table" &&
      !this.#described;
    this.#write(
      undescribed ? this.#frame(type, object) : shared(
        hasLeft ? `left ${type}` : type,
        () => this.#frame(type, object),
      ),
    );
    this.#options.hub.counts.events++;
  }

  #frame(type: ChangeType, object: StoredObject): Frame {
    return settle(() => this.#encode(type, object));
  }

  #encode(type: ChangeType, object: StoredObject): Uint8Array {
    const columns = !this.#described;
    const now = this.#options.clock.wallTime();
    const bytes = frame(type, object, this.format, { now, columns });
    this.#described = true;
    return bytes;
  }

  /** Sends a bookmark if the client asked for bookmarks. */
  bookmark(revision: number): void {
    if (!this.#options.bookmarks) return;
    this.#revision = Math.max(this.#revision, revision);
    // A client with a future revision, since the server lost its data, receives
    // the server's actual revision here.
    this.#bookmark(false, revision);
  }

  #bookmark(initialEventsEnd: boolean, revision = this.#revision): void {
    const now = this.#options.clock.wallTime();
    this.#write(
      bookmarkFrame(revision, this.format, { initialEventsEnd, now }),
    );
  }

  /** Writes events after the events that wait for a conversion. */
  #write(frame: Frame): void {
    const isInitial = this.#isStarting;
    if (this.#waiting === undefined && !(frame instanceof Promise)) {
      this.#send(frame, isInitial);
      return;
    }
    const sent = Promise.all([frame, this.#waiting]).then(
      ([bytes]) => this.#send(bytes, isInitial),
      (error) => {
        if (this.#ended) return;
        const { status } = internalError((error as Error).message);
        this.#send(errorFrame(status, this.format), isInitial);
        this.end();
      },
    ).then(() => {
      if (this.#waiting === sent) this.#waiting = undefined;
    });
    this.#waiting = sent;
  }

  #send(bytes: Uint8Array, isInitial: boolean): void {
    const writer = this.#writer;
    if (writer === undefined || this.#ended || this.#stalled) return;
    if (bytes.length === 0) return;
    this.#backlog = Math.min(this.#backlog, writer.pending);
    writer.write(bytes);
    if (isInitial) this.#backlog += bytes.length;
    else if (writer.pending > this.#backlog + this.#options.maxPending) {
      this.#options.hub.counts.dropped++;
      this.cut();
    }
  }

  /** Stalls the watch: the connection stays open but receives nothing. */
  stall(): void {
    this.#stalled = true;
  }

  /** Ends the watch with an ERROR event. */
  fail(error: StatusError): void {
    this.#write(errorFrame(error.status, this.format));
    this.end();
  }

  /** Ends the watch. */
  end(): void {
    if (this.#close()) this.#writer?.end();
  }

  /** Breaks the connection of the watch. */
  cut(): void {
    if (this.#close()) this.#writer?.destroy();
  }

  /** Releases the resources of the watch; returns false if it was already closed. */
  #close(): boolean {
    if (this.#ended) return false;
    this.#ended = true;
    this.#timer?.cancel();
    this.#options.hub.delete(this);
    return true;
  }
}

/** Interval of bookmarks, in milliseconds. */
const BOOKMARK_INTERVAL_MS = 60_000;

/**
 * Hub of watches: delivers each change to the watches of its collection,
 * immediately after the change is stored and in order of revisions.
 */
export class WatchHub {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #watchers: Map<Collection, Set<Watcher>> = new Map();
  readonly counts: WatchCounts = { open: 0, dropped: 0, events: 0 };
  readonly #sendsBookmarks: boolean;
  #bookmarks: Timer | undefined;

  /**
   * Creates a hub without watches.
   *
   * @param sendsBookmarks Whether watches get a bookmark every minute.
   */
  constructor(store: Store, clock: Clock, sendsBookmarks = true) {
    this.#store = store;
    this.#clock = clock;
    this.#sendsBookmarks = sendsBookmarks;
    store.listen((change, collection) => this.#publish(change, collection));
  }

  /** All open watches. */
  *all(): Iterable<Watcher> {
    for (const watchers of this.#watchers.values()) yield* watchers;
  }

  add(watcher: Watcher): void {
    const { collection } = watcher;
    const watchers = this.#watchers.get(collection) ?? new Set();
    this.#watchers.set(collection, watchers.add(watcher));
    this.counts.open++;
    // A watch from the future, of a server that has lost its data, ends by one.
    const isAhead = watcher.revision > this.#store.revision;
    if (!this.#sendsBookmarks && !isAhead) return;
    this.#bookmarks ??= this.#clock.setTimer(
      () => this.#sendBookmarks(),
      BOOKMARK_INTERVAL_MS,
    );
  }

  delete(watcher: Watcher): void {
    const watchers = this.#watchers.get(watcher.collection);
    if (!watchers?.delete(watcher)) return;
    if (watchers.size === 0) this.#watchers.delete(watcher.collection);
    if (--this.counts.open === 0) {
      this.#bookmarks?.cancel();
      this.#bookmarks = undefined;
    }
  }

  #publish(change: Change, collection: Collection): void {
    const watchers = this.#watchers.get(collection);
    if (watchers === undefined) return;
    // Watches with the same encoding share the bytes of an event.
    const frames = new Map<string, Frame>();
    for (const watcher of [...watchers]) {
      watcher.deliver(change, (form, make) => {
        const key = `${form}:${formatKey(watcher.format)}`;
        let bytes = frames.get(key);
        if (bytes === undefined) frames.set(key, bytes = make());
        return bytes;
      });
    }
  }

  #sendBookmarks(): void {
    this.#bookmarks = this.#sendsBookmarks
      ? this.#clock.setTimer(() => this.#sendBookmarks(), BOOKMARK_INTERVAL_MS)
      : undefined;
    for (const watcher of [...this.all()]) {
      watcher.bookmark(this.#store.revision);
    }
  }

  /**
   * Ends the watches of a collection that is no longer served, or all watches.
   */
  endAll(collection?: Collection): void {
    for (const watcher of [...this.all()]) {
      if (collection === undefined || watcher.collection === collection) {
        watcher.end();
      }
    }
  }
}
