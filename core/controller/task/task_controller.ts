import { checkKind, type Kind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import { keyOf, keyText } from "../../api/object_key.ts";
import {
  checkOption,
  checkOptions,
  type OptionRules,
} from "../../api/options.ts";
import { immediate } from "../../callback.ts";
import { mutableCopy } from "../../json/prune.ts";
import { jsonEquals } from "../../patch/json_value.ts";
import type {
  RetryPolicy,
  RetryPolicyOptions,
} from "../../queue/retry_policy.ts";
import type { Context } from "../context.ts";
import { Controller } from "../controller.ts";
import {
  CONTROLLER_OPTIONS,
  type ControllerOptions,
} from "../controller_options.ts";
import type { Namespaces } from "../namespaces.ts";
import type { MaybePromise } from "../reconciler.ts";
import type { RunObserver } from "../run/run_observers.ts";

/** Options of tasks: which objects have one, and what follows its end. */
export interface TaskOptions<P extends KubernetesObject = KubernetesObject> {
  /** Name of the controller of the tasks. Defaults to the kind, and `-task`. */
  readonly name?: string | undefined;
  /**
   * What the task of an object depends on: without a value, or with `false`, the
   * object has none, and when the value changes, its task is ended and
   * restarted. By default each object has a task until it is deleted.
   */
  readonly when?: ((object: P) => unknown) | undefined;
  /**
   * Pauses before a task that has thrown is started again, or `false` for never.
   * By default 1 s, 2 s, 4 s and so on, up to 5 minutes. A task that returns is
   * done until `when` changes, or the operator starts again.
   */
  readonly restart?: RetryPolicyOptions | RetryPolicy | false | undefined;
  /** Namespaces of the objects. Defaults to those of the operator. */
  readonly namespaces?: Namespaces | undefined;
  /** Label selector of the objects, such as `"app=web"`. Defaults to all. */
  readonly labelSelector?: ControllerOptions<P>["labelSelector"];
  /**
   * Highest number of tasks at a time; other objects wait until one has ended.
   *
   * @default {1000}
   */
  readonly concurrency?: number | undefined;
}

/**
 * Task of an object: it works until it returns or `ctx.signal` aborts, because the
 * object goes or changes as `when` says, this replica no longer leads, or the
 * operator stops.
 */
export type TaskRun<P extends KubernetesObject> = (
  object: P,
  ctx: Context<P>,
) => MaybePromise<void>;

const RULES: OptionRules<TaskOptions<never>> = {
  name: "name?",
  when: "function?",
  restart: { ...CONTROLLER_OPTIONS.retry, type: "object?" },
  namespaces: CONTROLLER_OPTIONS.namespaces,
  labelSelector: CONTROLLER_OPTIONS.labelSelector,
  concurrency: "count?",
} as OptionRules<TaskOptions<never>>;

const CONCURRENCY = 1_000;

/**
 * Controller of tasks: a run of an object is its task, and lasts as long as that.
 */
export class TaskController<P extends KubernetesObject> extends Controller<P> {
  readonly #given: GivenValues<P>;

  constructor(
    kind: Kind<P>,
    run: TaskRun<P>,
    options: ControllerOptions<P>,
    when: TaskOptions<P>["when"],
  ) {
    const given = new GivenValues(when);
    super(
      kind,
      {
        async reconcile(object, ctx) {
          if (given.begin(object)) await run(object, ctx);
        },
      },
      { ...options, filters: { update: (object) => given.hasChanged(object) } },
      { isTask: true },
    );
    this.#given = given;
  }

  protected override observersFor(): readonly RunObserver<P>[] {
    return [{ deleted: (key) => this.#given.forget(key) }];
  }
}

/** Values of `when` that the tasks of objects were started with. */
class GivenValues<P extends KubernetesObject> {
  readonly #when: TaskOptions<P>["when"];
  readonly #values: Map<string, readonly [uid: unknown, value: unknown]> =
    new Map();

  constructor(when: TaskOptions<P>["when"]) {
    this.#when = when;
  }

  /** Keeps the value of an object; returns whether it wants a task. */
  begin(object: P): boolean {
    // A copy: it may be a part of the object, which the task may change.
    const value = mutableCopy(this.#valueOf(object));
    this.#values.set(keyText(keyOf(object)), [object.metadata.uid, value]);
    return value !== undefined && value !== null && value !== false;
  }

  hasChanged(object: P): boolean {
    const kept = this.#values.get(keyText(keyOf(object)));
    return kept === undefined ||
      object.metadata.deletionTimestamp !== undefined ||
      !jsonEquals(kept, [object.metadata.uid, this.#valueOf(object)]);
  }

  forget(key: string): void {
    this.#values.delete(key);
  }

  #valueOf(object: P): unknown {
    return this.#when === undefined
      ? true
      : immediate(this.#when(object), "when()");
  }
}

/**
 * Checks the options of tasks.
 *
 * @returns Options of their controller.
 * @throws {TypeError | RangeError | SyntaxError} If an option is not valid; the
 * error names it.
 */
export function taskOptions<P extends KubernetesObject>(
  kind: Kind<P>,
  options: TaskOptions<P>,
  run: unknown,
): ControllerOptions<P> {
  const subject = "operator.task()";
  checkKind(kind, subject);
  checkOptions(options, RULES, subject);
  checkOption(run, "function", { name: "run", subject });
  const { when: _, restart, ...others } = options;
  return {
    name: `${kind.kind.toLowerCase()}-task`,
    concurrency: CONCURRENCY,
    ...others,
    retry: restart,
    maxInterval: false,
    defaultFilters: false,
  };
}
