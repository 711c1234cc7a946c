import { type NamedWebhookHost, sleep } from "@coracle/operator/internal";
import type { Perturbations } from "./perturbations.ts";
import type { WorldClock } from "./world_clock.ts";

/** Time after which late webhooks answer: longer than any API server waits. */
const LATE_MS = 40_000;

/**
 * Host of webhooks whose routes are away, late or not trusted while a plan says so,
 * and away for good when the process that serves them has ended.
 */
export function disturbedHost(
  host: NamedWebhookHost,
  { perturbations, clock, current }: {
    readonly perturbations: Perturbations;
    readonly clock: WorldClock;
    /** Returns the process that runs now. */
    readonly current: () => { readonly alive: boolean } | undefined;
  },
): NamedWebhookHost {
  return {
    ...host,
    serve(routes) {
      const server = current();
      const outside = clock.view();
      let isTrusted = true;
      type Routes = typeof routes;
      type Route = NonNullable<ReturnType<Routes["get"]>>;
      const disturbed = (route: Route): Route => async (body, call) => {
        const fault = perturbations.webhookFault;
        if (fault === "down" || !server?.alive) {
          throw new Error("Cannot answer the webhook: the operator is away");
        }
        if (fault === "rotated") {
          // One API server knows the new authority before the other.
          isTrusted = !isTrusted;
          if (!isTrusted) {
            throw new Error(
              "Cannot answer the webhook: the API server does not trust its new certificate yet",
            );
          }
        }
        if (fault === "slow") {
          await sleep(LATE_MS, { clock: outside, signal: call.signal });
        }
        return await route(body, call);
      };
      // Routes that are added later are served as well.
      const found = new Map<string, Route>();
      found.get = (path) => {
        const route = routes.get(path);
        return route && disturbed(route);
      };
      return host.serve(found);
    },
  };
}
