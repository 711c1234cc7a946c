import { Buffer } from "node:buffer";
import { PodFactory } from "./pods.ts";

/**
 * Chunk size, about that of a TLS record and of a write of a real server, in
 * bytes.
 */
const CHUNK_BYTES = 64 * 1024;
/** resourceVersion of the initial state; changes continue from there. */
const VERSION = 1_000_000;

/** Options of {@linkcode MemoryWatch}. */
export interface MemoryWatchOptions {
  /** Number of Pods. */
  readonly objects: number;
  /** Number of changes. */
  readonly events: number;
  /**
   * Interval of changes that increment a Pod's generation, like a change of its
   * spec; the others change its status only.
   */
  readonly generationEvery: number;
}

/** List of Pods and subsequent changes, as bytes in memory. */
export class MemoryWatch {
  readonly options: MemoryWatchOptions;
  /** Answer to a list. */
  readonly list: Buffer;
  readonly #events: readonly Buffer[];
  readonly #pods: PodFactory = new PodFactory();

  /**
   * @param options Number of Pods and changes; all of them are created
   * immediately.
   */
  constructor(options: MemoryWatchOptions) {
    this.options = options;
    const items = Array.from({ length: options.objects }, (_, index) => {
      const text = this.#pods.text(index, index + 1);
      const { kind: _kind, apiVersion: _version, ...pod } = JSON.parse(text);
      return this.#withGeneration(JSON.stringify(pod), index, 0);
    });
    const metadata = { resourceVersion: String(VERSION) };
    const head = { kind: "PodList", apiVersion: "v1", metadata, items: [] };
    this.list = Buffer.from(
      `${JSON.stringify(head).slice(0, -2)}${items.join()}]}`,
    );
    this.#events = Array.from(
      { length: options.events },
      (_, index) => this.#event(index),
    );
  }

  /** resourceVersion of the last of a number of changes. */
  version(events: number): string {
    return String(VERSION + events);
  }

  /** Key of the Pod of a change. */
  key(event: number): { readonly namespace: string; readonly name: string } {
    const text = this.#pods.text(this.#object(event));
    const { namespace, name } = JSON.parse(text).metadata;
    return { namespace, name };
  }

  /** Range of changes as chunks of a stream, split anywhere. */
  *chunks(from: number, to: number): Generator<Buffer, void, undefined> {
    const bytes = Buffer.concat(this.#events.slice(from, to));
    for (let start = 0; start < bytes.length; start += CHUNK_BYTES) {
      yield bytes.subarray(start, start + CHUNK_BYTES);
    }
  }

  /**
   * Index of the object of a change; consecutive changes concern distant
   * objects.
   */
  #object(event: number): number {
    const { objects } = this.options;
    return event * 7919 % objects;
  }

  #event(index: number): Buffer {
    const object = this.#object(index);
    const pod = this.#withGeneration(
      this.#pods.text(object, VERSION + 1 + index),
      object,
      1 + Math.floor(index / this.options.objects),
    );
    return Buffer.from(`{"type":"MODIFIED","object":${pod}}\n`);
  }

  /** Sets the generation; objects increment it at different changes. */
  #withGeneration(pod: string, object: number, changes: number): string {
    const { generationEvery } = this.options;
    const generation = 1 + Math.floor((object + changes) / generationEvery);
    return pod.replace('"metadata":{', `$&"generation":${generation},`);
  }
}
