import type { ApiServer } from "@coracle/dev/apiserver";
import { Lease } from "@coracle/operator/kinds";
import { compareResourceVersions } from "../../core/api/resource_version.ts";
import { Gadget } from "./operator_fixture.ts";

/** One write in the order of the server. */
interface SeenWrite {
  readonly version: string;
  readonly name: string;
  /** Value of a gadget's status, or holder of a Lease. */
  readonly text: string;
}

/**
 * Writes of processes to Leases and gadgets, in the order of the server. Each
 * written value begins with the writer: `identity`, or `identity:run:…`.
 */
export class Chronicle {
  readonly #holders: SeenWrite[] = [];
  readonly #writes: SeenWrite[] = [];
  readonly #ending = new AbortController();
  readonly #watching: Promise<unknown>;

  constructor(server: ApiServer) {
    const { client } = server;
    const { signal } = this.#ending;
    const leases = async () => {
      for await (const { object } of client.watch(Lease, { signal })) {
        const { metadata, spec } = object as Lease;
        const text = spec?.holderIdentity ?? "";
        if (this.#holders.at(-1)?.text === text) continue;
        this.#holders.push(seen(metadata, text));
      }
    };
    const gadgets = async () => {
      for await (const { object } of client.watch(Gadget, { signal })) {
        const { metadata, status } = object as Gadget;
        if (status?.value === undefined) continue;
        this.#writes.push(seen(metadata, status.value));
      }
    };
    this.#watching = Promise.allSettled([leases(), gadgets()]);
  }

  /** Number of writes of a process. */
  writesOf(identity: string): number {
    return this.#writes.filter(({ text }) => signer(text) === identity).length;
  }

  /** Number of writes so far. */
  get length(): number {
    return this.#writes.length;
  }

  /** Last writer of each gadget among the writes from an index on. */
  writersSince(index: number): ReadonlyMap<string, string> {
    return new Map(
      this.#writes.slice(index).map(({ name, text }) => [name, signer(text)]),
    );
  }

  /** Holders of the only Lease, in order. */
  get holders(): readonly string[] {
    return this.#holders.map(({ text }) => text);
  }

  /** Writes of processes that did not hold the only Lease at that moment. */
  get usurpations(): readonly string[] {
    return this.#writes.filter(({ version, text }) => {
      const holder = this.#holders.findLast((holder) =>
        compareResourceVersions(holder.version, version) < 0
      );
      return holder?.text !== signer(text);
    }).map(({ version, text }) => `${text} at ${version}`);
  }

  /** Writes of a run after another run has written the same gadget. */
  get interleavings(): readonly string[] {
    const last = new Map<string, string>();
    const ended = new Set<string>();
    const found: string[] = [];
    for (const { version, name, text } of this.#writes) {
      const run = text.split(":", 2).join(":");
      const before = last.get(name);
      if (before === run) continue;
      if (before !== undefined) ended.add(before);
      if (ended.has(run)) {
        found.push(`${text} after ${before} to ${name} at ${version}`);
      }
      last.set(name, run);
    }
    return found;
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await this.#watching;
  }
}

function seen(
  metadata: {
    readonly name?: string | undefined;
    readonly resourceVersion?: string | undefined;
  },
  text: string,
): SeenWrite {
  const { name = "", resourceVersion = "" } = metadata;
  return { version: resourceVersion, name, text };
}

function signer(text: string): string {
  return text.split(":", 1)[0] ?? "";
}
