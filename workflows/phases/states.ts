import { type Duration, milliseconds } from "../../core/api/duration.ts";
import { checkKind, type Kind } from "../../core/api/kind.ts";
import type { KubernetesObject } from "../../core/api/object.ts";
import {
  checkOptions,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
} from "../../core/api/options.ts";
import type { Clock } from "../../core/clock.ts";
import type { Context } from "../../core/controller/context.ts";
import type {
  MaybePromise,
  Reconciler,
} from "../../core/controller/reconciler.ts";
import { noUpdate } from "../../core/controller/result.ts";
import { isJsonObject } from "../../core/patch/json_value.ts";
import {
  type Condition,
  conditionsIn,
  RECONCILING,
  setReadiness,
} from "../conditions/condition.ts";
import { ExclusiveStatus } from "./exclusive_status.ts";

/** Object that is a state machine. */
export interface StatesObject<S extends string = string>
  extends KubernetesObject {
  /** Status of the object, which only its reconciler writes. */
  status?: {
    /** Current state. */
    state?: S | undefined;
    /** Time limit of the state, in milliseconds since the Unix epoch. */
    deadline?: number | undefined;
    /** Newest generation for which a resting state was reached. */
    observedGeneration?: number | undefined;
    /** Ready and Reconciling. */
    conditions?: Condition[] | undefined;
  } | undefined;
}

type StatesStatus = NonNullable<StatesObject["status"]>;
type StateDefinition<P extends StatesObject, S extends string> = StatesOptions<
  P,
  S
>["states"][S];
type StateRun<P extends StatesObject> = Parameters<
  StateDefinition<P, string>["run"]
>[0];

/** Options of {@linkcode states}. */
export interface StatesOptions<P extends StatesObject, S extends string> {
  /** State of a new object. */
  readonly initial: S;
  /** States by name. */
  readonly states: Readonly<
    Record<S, {
      /**
       * Performs the work of the state. It is called until it returns another
       * state, and again after a crash, so it must be idempotent. Further fields
       * that it sets in the status are written with the next state.
       *
       * @returns The next state, or undefined to stay.
       */
      readonly run: (
        run: { readonly object: P; readonly ctx: Context<P> },
      ) => MaybePromise<S | undefined>;
      /**
       * Whether the state is a resting one: the object is Ready. All other states
       * are transitional.
       *
       * @default {false}
       */
      readonly rest?: boolean | undefined;
      /** Time limit of the state. By default there is no limit. */
      readonly within?: Duration | undefined;
      /** State to enter when the time limit is exceeded; needed with `within`. */
      readonly late?: S | undefined;
    }>
  >;
  /**
   * Interval at which a transitional state runs.
   *
   * @default {"10s"}
   */
  readonly poll?: Duration | undefined;
  /**
   * Interval at which a resting state runs.
   *
   * @default {"60s"}
   */
  readonly interval?: Duration | undefined;
  /** Clock for time limits and conditions. Defaults to that of the operator. */
  readonly clock?: Clock | undefined;
}

/**
 * Creates a reconciler for objects that are state machines, such as blue-green
 * deployments. A state is written, with its time limit, before its function is
 * called, so that a restart changes nothing.
 *
 * @param kind The kind of the objects, whose status only this reconciler
 * writes.
 * @param options The states.
 * @throws {RangeError} If a named state does not exist, or only one of `within`
 * and `late` is given.
 *
 * @example Blue and green
 * ```ts
 * import type { Kind } from "@coracle/operator/core";
 * import { states, type StatesObject } from "@coracle/operator/workflows";
 *
 * type State = "Blue" | "StartingGreen" | "Green";
 * const Shop: Kind<StatesObject<State>> = {
 *   group: "example.com",
 *   version: "v1",
 *   kind: "Shop",
 * };
 * const greenIsWanted = () => true;
 * const greenIsReady = () => true;
 *
 * const reconciler = states(Shop, {
 *   initial: "Blue",
 *   states: {
 *     Blue: { rest: true, run: () => greenIsWanted() ? "StartingGreen" : undefined },
 *     StartingGreen: {
 *       run: () => greenIsReady() ? "Green" : undefined,
 *       within: "10m",
 *       late: "Blue",
 *     },
 *     Green: { rest: true, run: () => undefined },
 *   },
 * });
 * ```
 */
export function states<P extends StatesObject>(
  kind: Kind<P>,
  options: StatesOptions<P, NonNullable<NonNullable<P["status"]>["state"]>>,
): Reconciler<P> {
  const machine = new StateMachine(kind, options);
  return {
    async reconcile(object, ctx) {
      const after = await machine.step({ object, ctx });
      return noUpdate({ observed: false }).rescheduleAfter(after);
    },
  };
}

type StatesTiming = Pick<StatesOptions<never, never>, "poll" | "interval">;
const TIMING: OptionTable<StatesTiming> = {
  poll: { type: "duration", default: "10s" },
  interval: { type: "duration", default: "60s" },
};
const RULES: OptionRules<StatesOptions<never, never>> = {
  ...TIMING,
  clock: "clock?",
  initial: "name",
  states: "object",
};
const STATE_RULES: OptionRules<StateDefinition<StatesObject, string>> = {
  run: "function",
  rest: "boolean?",
  within: "duration?",
  late: "name?",
};

class StateMachine<P extends StatesObject> {
  readonly #options: StatesOptions<P, string>;
  readonly #timing: Settings<StatesTiming>;
  readonly #statuses: ExclusiveStatus<P>;

  constructor(kind: Kind<P>, options: StatesOptions<P, string>) {
    checkKind(kind, "states()");
    checkOptions(options, RULES, "states()");
    this.#options = options;
    this.#timing = resolveOptions(options, TIMING);
    this.#statuses = new ExclusiveStatus(kind);
    this.#known(options.initial);
    for (const [name, state] of Object.entries(options.states)) {
      checkOptions(state as object, STATE_RULES, `states(), state "${name}"`);
      const { within, late } = state as StateDefinition<P, string>;
      if (late !== undefined) this.#known(late);
      if ((within === undefined) === (late === undefined)) continue;
      throw new RangeError(
        `Cannot use the state "${name}": "within" and "late" belong together: received only ${
          within === undefined ? `late ${late}` : `within ${within}`
        }`,
      );
    }
  }

  /** Executes a run; returns the delay of the next one in milliseconds. */
  async step(run: StateRun<P>): Promise<number> {
    const { object } = run;
    this.#statuses.adopt(object);
    const status: StatesStatus = isJsonObject(object.status)
      ? object.status
      : {};
    object.status = status as P["status"];
    const { states, initial } = this.#options;
    const { state: stored } = status;
    if (stored === undefined) await this.#enter(run, initial);
    else if (typeof stored !== "string" || !Object.hasOwn(states, stored)) {
      // The state was removed from the options, or a user edited the status.
      const message = `The state ${JSON.stringify(stored)} does not exist`;
      run.ctx.events.warning("StatusInvalid", message);
      await this.#enter(run, initial);
    }
    const name = status.state!;
    const state = this.#known(name);
    const now = this.#now(run);
    const late = this.#deadline(status, state, now) <= now;
    if (late) {
      const message = `The state ${name} did not end within ${state.within}`;
      run.ctx.events.warning("TooLate", message);
    }
    const next = late ? state.late : await state.run(run);
    if (next !== undefined && next !== name) {
      await this.#enter(run, next);
      return 0;
    }
    await this.#write(run);
    return state.rest ? this.#timing.interval : this.#timing.poll;
  }

  /** Deadline of the current state, which a user may have edited. */
  #deadline(
    status: StatesStatus,
    { within }: StateDefinition<P, string>,
    now: number,
  ): number {
    if (within === undefined) {
      delete status.deadline;
      return Infinity;
    }
    const latest = now + milliseconds(within);
    const { deadline } = status;
    const isValid = Number.isFinite(deadline) && Number(deadline) <= latest;
    return status.deadline = isValid ? Number(deadline) : latest;
  }

  async #enter(run: StateRun<P>, name: string): Promise<void> {
    const status: StatesStatus = run.object.status!;
    status.state = name;
    delete status.deadline;
    this.#deadline(status, this.#known(name), this.#now(run));
    await this.#write(run);
  }

  async #write(run: StateRun<P>): Promise<void> {
    const { object, ctx } = run;
    const status: StatesStatus = object.status!;
    const name = status.state!;
    const { rest = false } = this.#known(name);
    const { generation } = object.metadata;
    const moment = { now: this.#now(run), generation };
    status.conditions = setReadiness(conditionsIn(status), {
      status: rest ? "True" : "False",
      also: rest ? undefined : RECONCILING,
      reason: name,
      message: `In the ${rest ? "resting" : "transitional"} state ${name}`,
    }, moment);
    if (rest) status.observedGeneration = generation;
    await this.#statuses.write(object, ctx.client, { signal: ctx.signal });
  }

  #now({ ctx }: StateRun<P>): number {
    return (this.#options.clock ?? ctx.clock).wallTime();
  }

  #known(name: string): StateDefinition<P, string> {
    const { states } = this.#options;
    if (Object.hasOwn(states, name)) return states[name]!;
    throw new RangeError(
      `Cannot enter a state: it does not exist: received ${name}`,
    );
  }
}
