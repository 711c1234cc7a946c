import type { Duration } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { DeepPartial, KubernetesObject } from "../../core/api/object.ts";
import {
  checkOption,
  checkOptions,
  checkParts,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../../core/api/options.ts";
import { immediate } from "../../core/callback.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import { keyOf, keyText } from "../../core/api/object_key.ts";
import type { Client } from "../../core/client/client.ts";
import type { Context } from "../../core/controller/context.ts";
import type { Reconciler } from "../../core/controller/reconciler.ts";
import { noUpdate } from "../../core/controller/result.ts";

/** Options of a {@linkcode Canary}. */
export interface CanaryOptions<P extends KubernetesObject> {
  /**
   * Client that patches canaries. It must not be the client of a run, because
   * the operator recognizes the writes of runs without a watch.
   */
  readonly client: Pick<Client, "patch">;
  /**
   * Returns a patch of the spec without any effect, such as an incremented
   * counter: the generation must increase.
   */
  readonly touch: (object: P) => DeepPartial<P>;
  /**
   * Label that marks an object as a canary, with the value `true`.
   *
   * @default {"coracle.dev/canary"}
   */
  readonly label?: string | undefined;
  /**
   * Interval between two patches of a canary.
   *
   * @default {"1m"}
   */
  readonly every?: Duration | undefined;
  /**
   * Time limit for the run that a patch causes.
   *
   * @default {"1m"}
   */
  readonly within?: Duration | undefined;
  /**
   * Clock for the interval and the time limit. Defaults to that of the operator.
   */
  readonly clock?: Clock | undefined;
}

type CanarySettings = Omit<
  CanaryOptions<never>,
  "client" | "clock" | "touch"
>;
const DEFAULTS: OptionTable<CanarySettings> = {
  label: { type: "name", default: "coracle.dev/canary" },
  every: { type: "duration", default: "1m" },
  within: { type: "duration", default: "1m" },
};
const RULES: OptionRules<CanaryOptions<never>> = {
  ...DEFAULTS,
  client: "object",
  clock: "clock?",
  touch: "function",
};

interface Watched<P extends KubernetesObject>
  extends Pick<Context<P>, "key" | "primaries"> {
  /** Newest generation that a run has seen or made. */
  generation: number;
  /** Expected generation; undefined while none is expected. */
  awaited: number | undefined;
  /** Time of the last patch or run, in milliseconds. */
  since: number;
}

/**
 * Canary objects that prove that an operator works from end to end. They are
 * not reconciled; instead they are patched at an interval, and each patch must
 * cause a run in time. If it does not, the watch, the queue or the API server
 * does not work, even if the process seems healthy. With `probes: { port, live:
 * () => canary.healthy }` of the operator, its container is then restarted.
 *
 * @typeParam P The type of the objects.
 *
 * @example A canary gadget
 * ```ts
 * import { ApiServer } from "@coracle/dev/apiserver";
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
 * await server.stop();
 * ```
 */
export class Canary<P extends KubernetesObject> {
  readonly #kind: Kind<P>;
  readonly #options: CanaryOptions<P>;
  readonly #settings: Settings<CanarySettings>;
  readonly #watched: Map<string, Watched<P>> = new Map();
  /** That of the option, or of the latest run: without any there is no canary. */
  #clock: Clock;

  /**
   * Creates the canaries of a kind.
   *
   * @param kind The kind.
   * @param options How canaries are marked and patched.
   * @throws {TypeError | RangeError} If the kind is invalid, or an option is
   * unknown, missing or invalid.
   */
  constructor(kind: Kind<P>, options: CanaryOptions<P>) {
    checkKind(kind, "a canary");
    checkOptions(options, RULES, "a canary");
    checkParts(options.client, { patch: "function" }, "a canary, client");
    this.#kind = kind;
    this.#options = options;
    this.#settings = resolveOptions(options, DEFAULTS);
    this.#clock = options.clock ?? systemClock;
  }

  /**
   * Whether every canary of this replica had a run in time; true without any
   * canary.
   */
  get healthy(): boolean {
    const { every, within } = this.#settings;
    const now = this.#clock.now();
    for (const [uid, watched] of this.#watched) this.#follow(uid, watched);
    return [...this.#watched.values()].every(({ awaited, since }) =>
      now - since <= within + (awaited === undefined ? every : 0)
    );
  }

  /**
   * Wraps a reconciler so that canaries are handled here, not reconciled. A
   * workflow of the controller runs for canaries, too, unless it is `explicit`.
   *
   * @throws {TypeError} If the reconciler has no `cleanup`, which is needed to
   * detect deleted canaries.
   */
  guard(reconciler: Reconciler<P>): Reconciler<P> {
    checkOption(reconciler, "object", {
      name: "reconciler",
      subject: "a canary",
    });
    if (reconciler.cleanup === undefined) {
      throw new TypeError(
        "Cannot guard a reconciler by canaries: it must have a cleanup",
      );
    }
    const { initContext, onError } = reconciler;
    return {
      ...initContext && { initContext: initContext.bind(reconciler) },
      ...onError && { onError: onError.bind(reconciler) },
      reconcile: async (object, ctx) => {
        if (!this.#isCanary(object)) {
          this.#watched.delete(object.metadata.uid ?? "");
          return await reconciler.reconcile(object, ctx);
        }
        const after = await this.#seen(object, ctx);
        return noUpdate({ observed: false }).rescheduleAfter(after);
      },
      cleanup: async (object, ctx) => {
        this.#watched.delete(object.metadata.uid ?? "");
        if (!this.#isCanary(object)) {
          return await reconciler.cleanup?.(object, ctx);
        }
      },
    };
  }

  #isCanary(object: P): boolean {
    return object.metadata.labels?.[this.#settings.label] === "true";
  }

  /** Follows a canary that was deleted or that another replica runs by now. */
  #follow(uid: string, watched: Watched<P>): void {
    const { key, primaries, generation } = watched;
    const text = keyText(key);
    const cached = primaries.get(text);
    if (!primaries.has(text) || cached && !this.#isCanary(cached)) {
      this.#watched.delete(uid);
    }
    const newest = cached?.metadata.generation ?? 0;
    if (newest <= generation) return;
    const since = this.#clock.now();
    Object.assign(watched, { generation: newest, awaited: undefined, since });
  }

  /**
   * Processes a run of a canary; returns the delay of the next one in
   * milliseconds.
   */
  async #seen(object: P, ctx: Context<P>): Promise<number> {
    const { uid = "", generation = 0 } = object.metadata;
    const { every, within } = this.#settings;
    this.#clock = this.#options.clock ?? ctx.clock;
    const now = this.#clock.now();
    const known = this.#watched.get(uid);
    if (known === undefined) {
      const { key, primaries } = ctx;
      const first = { key, primaries, generation };
      this.#watched.set(uid, { ...first, awaited: undefined, since: now });
      return every;
    }
    known.generation = generation;
    if (known.awaited !== undefined) {
      if (generation < known.awaited) return within;
      known.awaited = undefined;
      known.since = now;
      return every;
    }
    const due = known.since + every - now;
    if (due > 0) return due;
    const { client, touch } = this.#options;
    const patch = immediate(touch(object), "touch()");
    const touched = await client.patch(this.#kind, keyOf(object), patch);
    if (touched.metadata.generation === generation) {
      throw new RangeError(
        `Cannot wait for a canary: "touch" must change its spec: received ${
          JSON.stringify(patch)
        }`,
      );
    }
    known.awaited = touched.metadata.generation ?? generation + 1;
    known.generation = known.awaited;
    known.since = now;
    return within;
  }
}
