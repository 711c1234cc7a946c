import { checkKind, type Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyText } from "../../api/object_key.ts";
import {
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../api/option_rules.ts";
import { type ByteRange, wholeRange } from "../../json/byte_range.ts";
import { EventScanner } from "../../json/event_scanner.ts";
import type { ObjectHeader } from "../../json/object_header.ts";
import type { BodyCopy } from "./body_copy.ts";
import { BodyWriter, type UnwrittenBody } from "./body_writer.ts";
import {
  BUDGET_PARTS,
  type BudgetMember,
  type MemoryBudget,
} from "./memory_budget.ts";
import { Tiers } from "./tiers.ts";
import { ObjectDecoder } from "./object_decoder.ts";
import { type IndexDefinition, ObjectIndexes } from "./object_indexes.ts";
import type { ObjectStoreOptions } from "./object_store_options.ts";
import { PAGE_MASK } from "./slot_page.ts";
import { ObjectTable } from "./object_table.ts";
import type { StoreUsage } from "./store_usage.ts";

/** How much of decoded objects is kept where there is no budget. */
const DEFAULT_DECODED_BYTES = 8 * 1024 * 1024;
/** How much of a budget decoded objects of one store may take. */
const DECODED_SHARE = 1 / 8;

const RULES: OptionRules<ObjectStoreOptions<KubernetesObject>> = {
  kind: "object",
  prune: "strings?",
  indexes: "object?",
  budget: "object?",
  fetch: "function?",
  onIndexError: "function?",
};

/**
 * What a store consists of, by slot: the index, the bodies in their tiers, the
 * decoded objects and the indexes of users, kept in step with each other, and
 * accounted for with the budget.
 */
export class StoredObjects<T extends KubernetesObject> implements BudgetMember {
  /** Which objects there are; read only from outside. */
  readonly slots: ObjectTable = new ObjectTable();
  /** The indexes of users; read only from outside. */
  readonly indexes: ObjectIndexes<T>;

  readonly #kind: Kind<T>;
  readonly #bodies: Tiers = new Tiers(this.slots);
  readonly #writer: BodyWriter;
  readonly #decoder: ObjectDecoder<T>;
  readonly #scanner: EventScanner = new EventScanner();
  readonly #budget: MemoryBudget | undefined;
  /** Whether bodies may be given up. */
  readonly #mayDrop: boolean;
  /** What the budget was told last. */
  #charged = -1;

  constructor(options: ObjectStoreOptions<T>) {
    checkOptions(options, RULES, "an ObjectStore");
    const { kind, prune = [], indexes = {}, budget, fetch } = options;
    checkKind(kind, "an ObjectStore");
    if (budget !== undefined) {
      checkParts(budget, BUDGET_PARTS, "an ObjectStore, budget");
    }
    this.#kind = kind;
    this.#writer = new BodyWriter(kind, prune);
    this.#decoder = new ObjectDecoder(this.#bodies, this.#writer);
    this.indexes = new ObjectIndexes(options.onIndexError ?? (() => {}));
    this.#budget = budget;
    this.#mayDrop = fetch !== undefined;
    for (const [name, definition] of Object.entries(indexes)) {
      this.indexes.add(name, definition);
    }
    this.#charge();
  }

  /** Adds the object of a header, whose key was sought last and not found. */
  add(header: ObjectHeader): number {
    const body = this.#writer.take(header); // it may throw: before anything
    const slot = this.slots.add();
    this.#set(slot, header, body);
    return slot;
  }

  /** Puts the object of a header in the place of another one. */
  replace(slot: number, header: ObjectHeader): void {
    this.#set(slot, header, this.#writer.take(header));
  }

  remove(slot: number): void {
    this.indexes.remove(slot);
    this.#decoder.forget(slot);
    this.#bodies.remove(slot);
    this.slots.remove(slot);
    this.#charge();
  }

  /** The JSON, valid until any other call; undefined if it was given up. */
  body(slot: number): ByteRange | undefined {
    return this.#bodies.read(slot);
  }

  /** Keeps the JSON in a copy that outlives it; tells whether there is any. */
  copyBody(slot: number, copy: BodyCopy): boolean {
    return this.#bodies.copy(slot, copy);
  }

  /** The header of the JSON, valid until any other call. */
  header(slot: number): ObjectHeader | undefined {
    const body = this.#bodies.read(slot);
    return body && this.#scanner.scanObject(body);
  }

  /** What is known of an object that was given up, as a header of its own. */
  identity(slot: number): ObjectHeader {
    const { slots } = this;
    const generation = slots.page(slot).generation[slot & PAGE_MASK];
    const text = JSON.stringify({
      metadata: {
        ...slots.key(slot),
        uid: slots.uid(slot),
        resourceVersion: slots.version(slot),
        ...(generation !== 0 && { generation }),
      },
    });
    const header = this.#scanner.scanObject(wholeRange(text)).copy();
    header.isPartial = true;
    return header;
  }

  /** The object, frozen and kept; undefined if it was given up. */
  find(slot: number): T | undefined {
    const object = this.#decoder.get(slot);
    this.#charge();
    return object;
  }

  /** The object, frozen and kept. */
  get(slot: number): T {
    return this.present(slot, this.find(slot));
  }

  /** The object, frozen but not kept: for one pass over many. */
  peek(slot: number): T {
    return this.present(slot, this.#decoder.peek(slot));
  }

  /** The object as a fresh one that may be changed. */
  copy(slot: number): T {
    return this.present(slot, this.#decoder.copy(slot));
  }

  /** Decodes any object of the kind into the form that reads give. */
  decode(header: ObjectHeader): T {
    return this.#decoder.decode(this.#writer.write(header));
  }

  /**
   * Takes an object that was fetched because it had been given up. The index
   * stays as it is: the event of its version is yet to come.
   */
  keepFetched(slot: number, header: ObjectHeader): T {
    const body = this.#writer.write(header);
    const object = this.slots.hasUid(slot, header)
      ? this.#decoder.keep(slot, body)
      : this.#decoder.decode(body);
    this.#charge();
    return object;
  }

  /**
   * Adds an index over what is there and what will come.
   *
   * @throws {RangeError} If there is one of that name, or if only the keys of
   * some objects are kept.
   */
  addIndex(name: string, definition: IndexDefinition<T>): void {
    if (this.#bodies.keyOnly.objects > 0) {
      throw new RangeError(
        `Cannot add an index: it must be there before only keys are kept: received "${name}"`,
      );
    }
    if (!this.indexes.add(name, definition)) return;
    for (const slot of this.slotsIn(undefined)) {
      this.#index(slot, this.header(slot) as ObjectHeader, name);
    }
    this.#charge();
  }

  removeIndex(name: string): void {
    this.indexes.delete(name);
    this.#charge();
  }

  /** The slots of all objects, or of those in a namespace. */
  *slotsIn(namespace: string | undefined): Generator<number> {
    const { slots } = this;
    for (
      let slot = slots.nextUsed(0);
      slot >= 0;
      slot = slots.nextUsed(slot + 1)
    ) {
      if (namespace === undefined || slots.isIn(slot, namespace)) yield slot;
    }
  }

  /**
   * What is there of an object.
   *
   * @throws {Error} If only its key is kept.
   */
  present<V>(slot: number, value: V | undefined): V {
    if (value === undefined) {
      throw new Error(
        `Cannot get ${this.#kind.kind} ${
          keyText(this.slots.key(slot))
        } at once: only its key is kept, and read() would fetch it: received a call that does not wait`,
      );
    }
    return value;
  }

  /** How much memory is used by what. */
  usage(): StoreUsage {
    const { bytes, compressed, keyOnly } = this.#bodies;
    const decoded = this.#decoder.usage;
    const index = this.slots.allocatedBytes + this.indexes.allocatedBytes;
    const total = index + bytes.bytes + compressed.bytes + decoded.bytes;
    return { decoded, bytes, compressed, keyOnly, index, total };
  }

  /** Leaves the budget. */
  close(): void {
    this.#budget?.leave(this);
  }

  /** For the budget: how many bytes could sink or be forgotten. */
  get sinkable(): number {
    const { sinkableBytes, compressed } = this.#bodies;
    const droppable = this.#mayDrop && compressed.objects > 0
      ? compressed.bytes
      : 0;
    return this.#decoder.shrinkableBytes + sinkableBytes + droppable;
  }

  /** For the budget: does one step of sinking. */
  sink(): void {
    const bodies = this.#bodies;
    if (bodies.sinkableBytes > 0) {
      // Where the keys alone take all, a body would be compressed for nothing.
      if (this.#mayDrop && this.#isFullOfKeys) bodies.drop("bytes");
      else bodies.sink();
    } else if (this.#decoder.shrinkableBytes > 0) this.#decoder.shrink();
    else if (this.#mayDrop) bodies.drop("compressed");
    this.#charge();
  }

  get #isFullOfKeys(): boolean {
    const { allowed: limit = Infinity } = this.#budget ?? {};
    return this.slots.allocatedBytes + this.indexes.allocatedBytes >= limit;
  }

  /** Keeps the object of a header in a slot. */
  #set(slot: number, header: ObjectHeader, body: UnwrittenBody): void {
    const { slots } = this;
    this.#bodies.write(slot, body);
    slots.setUid(slot, header);
    slots.setVersion(slot, header);
    slots.page(slot).generation[slot & PAGE_MASK] = header.generation ?? 0;
    this.#decoder.forget(slot);
    if (!this.indexes.isEmpty) this.#index(slot, header);
    this.#charge();
  }

  #index(slot: number, header: ObjectHeader, only?: string): void {
    const object = () => this.#decoder.get(slot) as T;
    this.indexes.update(slot, { header, object, only });
  }

  /** Tells the budget what is used. */
  #charge(): void {
    const budget = this.#budget;
    if (budget === undefined) {
      this.#decoder.limit = DEFAULT_DECODED_BYTES;
      return;
    }
    this.#decoder.limit = budget.allowed * DECODED_SHARE;
    const held = this.slots.allocatedBytes + this.indexes.allocatedBytes +
      this.#bodies.allocatedBytes + this.#decoder.bytes;
    if (held !== this.#charged || budget.isExceeded) {
      this.#charged = held;
      budget.charge(this, held);
    }
  }
}
