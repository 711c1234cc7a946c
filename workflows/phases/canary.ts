import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { DeepPartial, KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
} from "../../core/api/options.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { keyOf } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import type { Reconciler } from "../../core/controller/reconciler.ts";
import { noUpdate } from "../../core/controller/result.ts";

/** How a {@linkcode Canary} is recognised and how long it may be silent. */
export interface CanaryOptions<P extends KubernetesObject> {
  /**
   * Touches the canary. It must not be the client of a run, whose writes the
   * operator knows as its own without a watch.
   */
  readonly client: Pick<Client, "patch">;
  /**
   * Changes the spec of the canary in a way that means nothing, such as by
   * counting a field up: the generation must grow.
   */
  readonly touch: (object: P) => DeepPartial<P>;
  /**
   * The label, set to `true`, that makes an object a canary.
   *
   * @default {"coracle.dev/canary"}
   */
  readonly label?: string | undefined;
  /**
   * How often a canary is touched.
   *
   * @default {"1m"}
   */
  readonly every?: Duration | undefined;
  /**
   * How soon the change must come back as a run.
   *
   * @default {"1m"}
   */
  readonly within?: Duration | undefined;
  /**
   * Where time comes from.
   *
   * @default {the machine's clock}
   */
  readonly clock?: Clock | undefined;
}

const RULES: OptionRules<CanaryOptions<never>> = {
  client: "object",
  touch: "function",
  label: "name?",
  every: "duration?",
  within: "duration?",
  clock: "clock?",
};

interface Watched {
  /** The generation that must be seen; undefined while none is awaited. */
  awaited: number | undefined;
  /** When it was touched, or last seen. */
  since: number;
}

/**
 * Objects that prove that an operator is alive from end to end: nothing is done
 * for them, but every so often one is touched, and the change must come back as
 * a run. If it does not, watch, queue or API server do not do their work, however
 * healthy the process looks. With `probes: { port, live: () => canary.healthy }`
 * of the operator, its container is then started anew.
 *
 * @typeParam P The type of the objects.
 *
 * @example A gadget that only proves that the operator is alive
 * ```ts
 * import { ApiServer } from "@coracle/operator/apiserver";
 * import { untyped } from "@coracle/operator/core";
 * import { Canary } from "@coracle/operator/workflows";
 *
 * const Gadget = untyped({ group: "example.com", version: "v1", kind: "Gadget" });
 * const server = await ApiServer.start({ port: false });
 * let touches = 0;
 * const canary = new Canary(Gadget, {
 *   client: server.client,
 *   touch: () => ({ spec: { touches: ++touches } }),
 * });
 * const reconciler = canary.guard({ reconcile() {}, cleanup() {} });
 * if (!canary.healthy || !reconciler.cleanup) throw new Error("Unexpected");
 * await server.stop();
 * ```
 */
export class Canary<P extends KubernetesObject> {
  readonly #kind: Kind<P>;
  readonly #client: CanaryOptions<P>["client"];
  readonly #touch: (object: P) => DeepPartial<P>;
  readonly #label: string;
  readonly #clock: Clock;
  readonly #every: number;
  readonly #within: number;
  readonly #watched: Map<string, Watched> = new Map();

  /**
   * Prepares canaries of a kind.
   *
   * @param kind The kind.
   * @param options How they are recognised and touched.
   * @throws {TypeError | RangeError} If the kind is none, or an option is
   * unknown, missing or makes no sense.
   */
  constructor(kind: Kind<P>, options: CanaryOptions<P>) {
    checkKind(kind, "a canary");
    checkOptions(options, RULES, "a canary");
    checkParts(options.client, { patch: "function" }, "a canary, client");
    const { label = "coracle.dev/canary", clock = systemClock } = options;
    const { every = "1m", within = "1m" } = options;
    this.#kind = kind;
    this.#client = options.client;
    this.#touch = options.touch;
    this.#label = label;
    this.#clock = clock;
    this.#every = milliseconds(every, "every");
    this.#within = milliseconds(within, "within");
  }

  /** Whether every canary was heard of in time; true where there is none. */
  get healthy(): boolean {
    const now = this.#clock.now();
    return [...this.#watched.values()].every(({ awaited, since }) =>
      now - since <= this.#within + (awaited === undefined ? this.#every : 0)
    );
  }

  /**
   * A reconciler that leaves canaries to this object.
   *
   * @throws {TypeError} If the reconciler has no `cleanup`: it would not be
   * learnt that a canary is gone.
   */
  guard(reconciler: Reconciler<P>): Reconciler<P> {
    checkOption(reconciler, "object", {
      name: "reconciler",
      subject: "a canary",
    });
    const { cleanup } = reconciler;
    if (cleanup === undefined) {
      throw new TypeError(
        "Cannot guard a reconciler by canaries: it must have a cleanup: received one without",
      );
    }
    return {
      ...reconciler,
      reconcile: async (object, ctx) => {
        if (!this.#isCanary(object)) {
          return await reconciler.reconcile(object, ctx);
        }
        const after = await this.#seen(object);
        return noUpdate({ observed: false }).rescheduleAfter(after);
      },
      cleanup: async (object, ctx) => {
        if (!this.#isCanary(object)) return await cleanup(object, ctx);
        this.#watched.delete(object.metadata.uid ?? "");
      },
    };
  }

  #isCanary(object: P): boolean {
    return object.metadata.labels?.[this.#label] === "true";
  }

  /** Gives the milliseconds until the canary is to be touched again. */
  async #seen(object: P): Promise<number> {
    const { uid = "", generation = 0 } = object.metadata;
    const now = this.#clock.now();
    const known = this.#watched.get(uid);
    if (known === undefined) {
      this.#watched.set(uid, { awaited: undefined, since: now });
      return this.#every;
    }
    if (known.awaited !== undefined) {
      if (generation < known.awaited) return this.#within;
      known.awaited = undefined;
      known.since = now;
      return this.#every;
    }
    const due = known.since + this.#every - now;
    if (due > 0) return due;
    const patch = this.#touch(object);
    const touched = await this.#client.patch(this.#kind, keyOf(object), patch);
    if (touched.metadata.generation === generation) {
      throw new RangeError(
        `Cannot await a canary: "touch" must change its spec: received ${
          JSON.stringify(patch)
        }`,
      );
    }
    known.awaited = touched.metadata.generation ?? generation + 1;
    known.since = now;
    return this.#within;
  }
}
