import type { ApiServerOptions } from "../apiserver/server_options.ts";
import type { NamedWebhookHost } from "@coracle/operator/internal";

type Services = NonNullable<ApiServerOptions["services"]>;

/** Namespace of the services of operators in the process; none has to exist. */
const NAMESPACE = "coracle-webhooks";
const PORT = 443;

/** Part of the time of a call in which a handler must answer, as with a listener. */
const SHARE = 0.8;

/**
 * Host of the webhooks of operators that run in the process of an embedded server,
 * which calls them without a socket and without certificates.
 *
 * @param given Further services of the server.
 * @returns The host, and the services to start the server with.
 */
export function webhookServices(
  given: Services = {},
): { readonly host: NamedWebhookHost; readonly services: Services } {
  const services: Record<string, Services[string]> = { ...given };
  let count = 0;
  return {
    services,
    host: {
      serve(routes) {
        const name = `operator-${++count}`;
        const key = `${NAMESPACE}/${name}:${PORT}`;
        services[key] = async (review, { path, timeout, signal }) => {
          const route = routes.get(path);
          if (route === undefined) {
            throw new Error(`Cannot serve ${path}: it has no webhook`);
          }
          const body = new TextEncoder().encode(JSON.stringify(review));
          return await route(body, { signal, timeout: timeout * SHARE });
        };
        return {
          clientConfig: (path) => ({
            service: { namespace: NAMESPACE, name, port: PORT, path },
          }),
          close: () => void delete services[key],
        };
      },
    },
  };
}
