import type { UntypedObject } from "@coracle/operator/client";
import type { CrdManifest } from "@coracle/operator/crd";
import type { OperatorHandle } from "@coracle/operator/core";
import {
  conversionHandler,
  isJsonObject,
  type NamedWebhookHost,
} from "@coracle/operator/internal";
import type { ApiServerOptions } from "../../apiserver/server_options.ts";
import type { OperatorSource } from "../check/operator_source.ts";
import type { Snapshot } from "./snapshot.ts";

type Services = NonNullable<ApiServerOptions["services"]>;
type Handler = Exclude<Services[string], string>;

/** Where API servers call an operator, as its option `webhooks` says. */
interface Place {
  readonly name?: string | undefined;
  readonly url?: string | undefined;
  readonly service?: {
    readonly namespace?: string | undefined;
    readonly name: string;
    readonly port?: number | undefined;
  } | undefined;
}

const PORT = 443;
/** Part of the time of a call in which a handler must answer, as with a listener. */
const SHARE = 0.8;
/** Namespace of an operator whose kubeconfig names none. */
const NAMESPACE = "default";
const CONFIGURATIONS = ["mutating", "validating"].map((type) =>
  `admissionregistration.k8s.io/${type}webhookconfigurations`
);

/**
 * Webhooks in a plan: those of the operator are registered as in the cluster and
 * answer in the process. Those of others are not called and let everything pass.
 */
export function plannedWebhooks(
  { operators, kinds }: Pick<OperatorSource, "operators" | "kinds">,
  snapshot: Snapshot,
): { readonly host: NamedWebhookHost; readonly services: Services } {
  const places = operators.flatMap(({ settings }) => {
    const { webhooks } = (settings ?? {}) as Partial<
      OperatorHandle["settings"]
    >;
    return webhooks === undefined || "serve" in webhooks
      ? []
      : [webhooks as Place];
  });
  const convert = conversionHandler(
    kinds.filter(({ conversion }) => conversion !== undefined),
  );
  const others: Handler = async (review) =>
    review.kind === "ConversionReview" ? await convert(review) : {
      apiVersion: review.apiVersion,
      kind: review.kind,
      response: { uid: review.request?.uid, allowed: true },
    };
  const own = new Map<string, Handler>();
  const services = new Proxy<Services>({}, {
    get: (_, key) => own.get(String(key)) ?? others,
  });
  const bundles = bundlesOf(snapshot);
  let count = 0;
  const [{ name, service } = {} as Place] = places;
  const configurations = name ??
    (service && `${service.name}.${service.namespace ?? NAMESPACE}`);
  return {
    services,
    host: {
      ...configurations !== undefined && { name: configurations },
      serve(routes) {
        const { url, service } = places[count++ % places.length] ?? {};
        const { namespace = NAMESPACE, name = "operator", port = PORT } =
          service ?? {};
        const key = url === undefined
          ? `${namespace}/${name}:${port}`
          : new URL(url).origin;
        own.set(key, async (review, { path, timeout, signal }) => {
          const route = routes.get(path);
          if (route === undefined) {
            return await others(review, { path, timeout, signal });
          }
          const body = new TextEncoder().encode(JSON.stringify(review));
          return await route(body, { signal, timeout: timeout * SHARE });
        });
        return {
          clientConfig(path) {
            const place = url === undefined
              ? { service: { namespace, name, port, path } }
              : { url: `${url.replace(/\/$/, "")}${path}` };
            const caBundle = bundles.get(key);
            return { ...place, ...caBundle !== undefined && { caBundle } };
          },
          close: () => void own.delete(key),
        };
      },
    },
  };
}

/** Authorities of the webhooks of a cluster, by their service or origin. */
function bundlesOf(snapshot: Snapshot): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (config: unknown) => {
    if (!isJsonObject(config)) return;
    const { url, service, caBundle } = config;
    const { namespace, name, port = PORT } = Object(service);
    const key = typeof url === "string" && URL.canParse(url)
      ? new URL(url).origin
      : `${namespace}/${name}:${port}`;
    if (typeof caBundle === "string") found.set(key, caBundle);
  };
  for (const definition of snapshot.definitions.values()) {
    const spec = definition["spec"] as CrdManifest["spec"];
    add(spec.conversion?.webhook?.clientConfig);
  }
  for (const key of CONFIGURATIONS) {
    for (const { object } of snapshot.objects(key)) {
      const { webhooks } = object as UntypedObject & {
        readonly webhooks?: readonly { readonly clientConfig?: unknown }[];
      };
      for (const { clientConfig } of webhooks ?? []) add(clientConfig);
    }
  }
  return found;
}
