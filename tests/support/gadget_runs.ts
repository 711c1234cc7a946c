import type {
  Context,
  ControllerHandle,
  ControllerOptions,
  ObjectKey,
  Operator,
  OperatorOptions,
  Reconciler,
} from "@coracle/operator/core";
import { Gadget, type OperatorFixture } from "./operator_fixture.ts";

/** Gadget of most scenarios. */
export const KEY: Required<ObjectKey> = { namespace: "default", name: "a" };

/** Input of one run of a reconciler. */
export interface GadgetRun {
  /** Gadget of the run. */
  readonly gadget: Gadget;
  /** Which retry it was, and whether it was the last. */
  readonly attempt: number;
  readonly last: boolean;
  /** When it began, by the clock of the case. */
  readonly at: number;
}

/** An operator whose runs are recorded. */
export interface GadgetRuns {
  readonly operator: Operator;
  readonly controller: ControllerHandle<Gadget>;
  /** All runs, in the order in which they began. */
  readonly runs: readonly GadgetRun[];
}

/** Options of {@linkcode startGadgets}. */
export interface StartGadgetsOptions extends ControllerOptions<Gadget> {
  readonly operator?: OperatorOptions | undefined;
  readonly cleanup?: Reconciler<Gadget>["cleanup"];
  readonly onError?: Reconciler<Gadget>["onError"];
}

/** Starts an operator for gadgets, and records its runs. */
export async function startGadgets(
  fixture: OperatorFixture,
  reconcile: Reconciler<Gadget>["reconcile"],
  options: StartGadgetsOptions = {},
): Promise<GadgetRuns> {
  const { operator: operatorOptions, cleanup, onError, ...others } = options;
  const operator = fixture.operator(operatorOptions);
  const runs: GadgetRun[] = [];
  const controller = operator.register(Gadget, {
    reconcile(gadget: Gadget, ctx: Context<Gadget>) {
      const { attempt, last } = ctx.retry;
      runs.push({ gadget, attempt, last, at: fixture.clock.now() });
      return reconcile(gadget, ctx);
    },
    ...(cleanup !== undefined && { cleanup }),
    ...(onError !== undefined && { onError }),
  }, others);
  await fixture.start(operator);
  return { operator, controller, runs };
}

/** Fulfilled when the time has passed on the clock of the case. */
export function pause(
  fixture: OperatorFixture,
  duration: number,
): Promise<void> {
  return new Promise((resolve) => fixture.clock.setTimer(resolve, duration));
}

const WRITES: ReadonlySet<string> = new Set([
  "create",
  "update",
  "patch",
  "delete",
]);

/**
 * Writes since a moment, such as `patch gadgets/status`, without Leases and
 * Events.
 *
 * @param since How many requests there had been.
 */
export function writesSince(fixture: OperatorFixture, since: number): string[] {
  return fixture.requests.slice(since)
    .filter(({ verb, resource }) =>
      WRITES.has(verb) && resource !== "leases" && resource !== "events"
    )
    .map(({ verb, resource, subresource }) =>
      `${verb} ${resource}${subresource ? `/${subresource}` : ""}`
    );
}
