import type { Kind } from "../api/kind.ts";
import type { ObjectKey } from "../api/object_key.ts";
import type { Client } from "../client/client.ts";
import { deadline, sleep } from "../clock.ts";
import type {
  ControllerHealth,
  ObjectHistory,
} from "../controller/controller.ts";
import type { ControllerDeps } from "../controller/controller.ts";
import type { ControllerSettings } from "../controller/controller_options.ts";
import { namespaceSet } from "../controller/namespaces.ts";
import { installCrd } from "../crd/install_crd.ts";
import { isDefinedKind } from "../crd/kind_definition.ts";
import type { StartErrorPolicy } from "./operator_options.ts";
import { checkWatchable, syncTimeoutError } from "./start_check.ts";

/** What an operator does with its controllers, whatever their kind. */
export interface ManagedController {
  readonly name: string;
  readonly kind: Kind;
  readonly settings: Pick<
    ControllerSettings,
    "fieldManager" | "install" | "namespaces"
  >;
  /** The kinds that it keeps, which are those of its event sources. */
  readonly secondaryKinds: readonly Kind[];
  /** The kinds that it only watches. */
  readonly readOnlyKinds: readonly Kind[];
  /** Which objects run now. */
  readonly runningKeys: readonly string[];
  start(
    deps: ControllerDeps,
    options?: { readonly partly?: boolean | undefined },
  ): Promise<void>;
  startLeading(): void;
  stopLeading(): void;
  releaseShard(): Promise<void>;
  acquireShard(wasOwned: (key: string) => boolean): void;
  pause(): void;
  abort(): void;
  whenIdle(): Promise<void>;
  cancelStart(): Promise<void>;
  stop(): Promise<void>;
  health(): ControllerHealth;
  why(key: ObjectKey | string): ObjectHistory | undefined;
}

/** How controllers are started. */
export interface ControllerStartDeps {
  readonly deps: ControllerDeps;
  /** Installs definitions, also where this replica does not lead. */
  readonly client: Client;
  readonly startErrors: StartErrorPolicy;
  /** Milliseconds. */
  readonly syncTimeout: number;
  /** Fires when the operator stops. */
  readonly signal: AbortSignal;
  /** The controllers that the operator has, by name. */
  readonly controllers: ReadonlyMap<string, ManagedController>;
}

/** The first and the longest pause between attempts, in milliseconds. */
const FIRST_PAUSE = 1_000;
const LONGEST_PAUSE = 30_000;

/**
 * Starts a controller as the policy for errors says.
 *
 * With `"fail"` it first looks whether the kind can be watched at all, so that
 * what is missing is told at once and by name. With `"wait"` a controller that
 * cannot start is tried again until it can, or the operator stops.
 *
 * @returns Fulfilled when its caches are complete, or when it waits.
 * @throws {Error} If it cannot start and the policy is to fail.
 */
export async function startController(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { startErrors, deps } = options;
  try {
    if (startErrors === "fail") {
      await install(controller, options);
      await check(controller, deps);
      checkWanted(controller, options);
    }
    await startInTime(controller, options);
  } catch (error) {
    if (startErrors === "fail" || options.signal.aborted) throw error;
    deps.log.warn("A controller cannot start yet, it waits", {
      controller: controller.name,
      error,
    });
  }
}

/**
 * Starts all controllers, those too that are registered while others start. One
 * that was taken away meanwhile need not have started.
 *
 * @param controllers Those that there are, by name.
 * @param start Starts one.
 */
export async function startAll(
  controllers: ReadonlyMap<string, ManagedController>,
  start: (controller: ManagedController) => Promise<void>,
): Promise<void> {
  const begun = new Set<ManagedController>();
  for (;;) {
    const late = [...controllers.values()].filter((one) => !begun.has(one));
    if (late.length === 0) return;
    await Promise.all(late.map(async (controller) => {
      begun.add(controller);
      try {
        await start(controller);
      } catch (error) {
        if (controllers.get(controller.name) === controller) throw error;
      }
    }));
  }
}

/** What was stopped or taken away meanwhile may have been started anew since. */
function checkWanted(
  controller: ManagedController,
  { signal, controllers }: ControllerStartDeps,
): void {
  signal.throwIfAborted();
  if (controllers.get(controller.name) === controller) return;
  throw new Error(
    `Cannot start controller "${controller.name}": it was taken away meanwhile: received a call of unregister`,
  );
}

async function check(
  { kind, settings }: ManagedController,
  deps: ControllerDeps,
): Promise<void> {
  const { scope = "Namespaced" } = kind;
  await checkWatchable(
    deps.client,
    kind,
    namespaceSet(
      settings.namespaces ?? deps.namespaces,
      deps.currentNamespace,
      { scope, kind: kind.kind },
    ),
  );
}

/** Starts it, and goes on in the background if that takes too long. */
async function startInTime(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { deps, syncTimeout, startErrors } = options;
  const started = startErrors === "fail"
    ? controller.start(deps)
    : startAgainAndAgain(controller, options);
  await deadline(started, syncTimeout, {
    clock: deps.clock,
    onTimeout: () =>
      syncTimeoutError(controller, syncTimeout, lastError(controller)),
  });
}

async function startAgainAndAgain(
  controller: ManagedController,
  options: ControllerStartDeps,
): Promise<void> {
  const { deps, signal } = options;
  for (let pause = FIRST_PAUSE;; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    try {
      await install(controller, options);
      checkWanted(controller, options);
      await controller.start(deps, { partly: true });
      return;
    } catch (error) {
      checkWanted(controller, options);
      deps.log.warn("A controller cannot start, it is tried again", {
        controller: controller.name,
        retryIn: pause,
        error,
      });
      await controller.cancelStart();
      await sleep(pause, { clock: deps.clock, signal });
    }
  }
}

/** Applies the CustomResourceDefinition of a controller that asks for it. */
async function install(
  { kind, settings }: ManagedController,
  { client, deps: { clock } }: ControllerStartDeps,
): Promise<void> {
  if (settings.install && isDefinedKind(kind)) {
    await installCrd(client, kind, { clock });
  }
}

function lastError(controller: ManagedController): string | undefined {
  const { informers, sources } = controller.health();
  const errors = [
    ...informers.flatMap(({ watches }) =>
      watches.map((watch) => watch.lastError?.message)
    ),
    ...[...sources.values()].map(({ message }) => message),
  ];
  return errors.find((message) => message !== undefined);
}
