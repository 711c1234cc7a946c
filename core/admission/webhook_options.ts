import { isLabel, isSubdomain } from "../api/kind.ts";
import {
  checkOptions,
  type OptionRules,
  type OptionTable,
  resolveOptions,
  type Settings,
  shown,
} from "../api/options.ts";
import type { HostedListener } from "../client/host.ts";
import type { NamedWebhookHost, WebhookHost } from "../client/webhook_host.ts";

/** Options of the listener for admission webhooks, the option `webhooks` of an operator. */
export interface WebhookServerOptions {
  /**
   * Port to listen on; 0 for any free port.
   *
   * @default {9443}
   */
  readonly port?: number | undefined;
  /**
   * Address to listen on.
   *
   * @default {"0.0.0.0"}
   */
  readonly host?: string | undefined;
  /** Service in front of the operator's pods; API servers call it. */
  readonly service?:
    | {
      /** Namespace. Defaults to that of the operator. */
      readonly namespace?: string | undefined;
      /** Name of the Service. */
      readonly name: string;
      /**
       * Port at which API servers call the Service, which may lead to another of
       * the listener.
       *
       * @default {443}
       */
      readonly port?: number | undefined;
    }
    | undefined;
  /**
   * Base URL by which API servers call an operator outside of the cluster, such as
   * `https://10.0.0.7:9443`. Port 0 stands for that of the listener.
   */
  readonly url?: string | undefined;
  /**
   * Certificates: `"self"` for an authority of the operator's own, kept in a
   * Secret and rotated; `"cert-manager"` for those of cert-manager, whose objects
   * `coracle manifests` prints; or files that others replace: of each file the
   * path, or a directory with `tls.crt`, `tls.key` and `ca.crt`.
   *
   * @default {"self"}
   */
  readonly certificates?:
    | "self"
    | "cert-manager"
    | {
      /** File with the certificate and its chain, in PEM. */
      readonly certFile: string;
      /** File with the private key, in PEM. */
      readonly keyFile: string;
      /** File with the certificates of the authorities, in PEM. */
      readonly caFile: string;
    }
    | { readonly directory: string }
    | undefined;
  /**
   * Callers that are let in: those with a client certificate, which an API server
   * presents if its `AdmissionConfiguration` names one. Others are answered with 401
   * or 403. Without it anyone who reaches the port is answered.
   */
  readonly callers?:
    | {
      /** File with the certificates of the authorities, in PEM; read again. */
      readonly caFile: string;
      /**
       * Names of the users, the common names of certificates. Defaults to all. Not on
       * Bun, whose servers do not show the certificates of their clients.
       */
      readonly names?: readonly string[] | undefined;
    }
    | undefined;
  /**
   * Name of the webhook configurations, unique within the cluster, and of the Secret
   * with the certificates. Defaults to that of the Service with its namespace, such
   * as `shop-operator.shop-system`; with a URL, to the name of the first kind.
   */
  readonly name?: string | undefined;
  /**
   * Maximum size of a request, in bytes or as text such as `"32MiB"`. A request
   * has the object before and after the change.
   *
   * @default {"32MiB"}
   */
  readonly bodyLimit?: number | string | undefined;
  /**
   * Maximum number of requests that are handled at the same time; further ones are
   * answered with 429.
   *
   * @default {100}
   */
  readonly concurrency?: number | undefined;
}

/** Directory of the certificates of cert-manager. */
export const CERT_MANAGER_DIRECTORY = "/etc/coracle/webhooks";

const SERVICE_RULES: OptionRules<
  NonNullable<WebhookServerOptions["service"]>
> = { namespace: "name?", name: "name", port: "port?" };

const CALLER_RULES: OptionRules<
  NonNullable<WebhookServerOptions["callers"]>
> = { caFile: "name", names: "strings?" };

/** Method of a {@linkcode WebhookHost}, which takes the place of a listener. */
export const WEBHOOK_HOST_RULES: OptionRules<WebhookHost> = {
  serve: "function",
};

export const WEBHOOK_SERVER_OPTIONS: OptionTable<
  WebhookServerOptions,
  "service" | "url" | "callers" | "name"
> = {
  port: { type: "port", default: 9443 },
  host: { type: "name", default: "0.0.0.0" },
  service: { type: "object?", options: SERVICE_RULES, check: checkService },
  url: { type: "name?", check: checkUrl },
  certificates: {
    type: "any",
    default: "self",
    words: ["self", "cert-manager"],
    check: (value, subject) =>
      checkCertificatesOption(value, subject, {
        words: ["self", "cert-manager"],
        files: ["certFile", "keyFile", "caFile"],
      }),
  },
  callers: { type: "object?", options: CALLER_RULES, check: checkCallers },
  name: { type: "name?", check: checkName },
  bodyLimit: { type: "bytes", default: "32MiB" },
  concurrency: { type: "count", default: 100 },
};

/** Options of the listener with defaults. */
export type WebhookServerSettings = Settings<
  WebhookServerOptions,
  "service" | "url" | "callers" | "name"
>;

/** Listener, or what takes its place. */
export type WebhookPlace = WebhookServerSettings | NamedWebhookHost;

/**
 * Place where webhooks are served, with defaults.
 *
 * @param given Option `webhooks` of an operator, checked.
 */
export function webhookPlace(
  given: WebhookServerOptions | NamedWebhookHost | HostedListener,
): WebhookPlace {
  if ("serve" in given) return given;
  if (
    !("besideServer" in given) &&
    (given.service === undefined) === (given.url === undefined)
  ) {
    throw new TypeError(
      `Cannot read the options of an operator: "webhooks" must have either "service", the Service in front of its pods, or "url", by which API servers reach it: received ${
        given.url === undefined ? "neither" : "both"
      }`,
    );
  }
  return resolveOptions(
    "besideServer" in given
      ? { port: 0, host: "127.0.0.1", url: "https://127.0.0.1:0" }
      : given,
    WEBHOOK_SERVER_OPTIONS,
  );
}

function checkUrl(url: string, subject: string): void {
  const { protocol, search, hash, username } = URL.parse(url) ?? {};
  if (protocol === "https:" && !search && !hash && !username) return;
  throw new TypeError(
    `Cannot read the options of ${subject}: "url" must be a URL with https: and without query: received ${
      shown(url)
    }`,
  );
}

/**
 * Checks the option `certificates` of a server: a word, the paths of files, or a
 * directory.
 */
export function checkCertificatesOption(
  value: unknown,
  subject: string,
  { words, files }: {
    readonly words: readonly string[];
    readonly files: readonly string[];
  },
): void {
  if (typeof value === "string" && words.includes(value)) return;
  if (typeof value !== "object" || value === null) {
    const known = words.map((word) => `"${word}", `).join("");
    throw new TypeError(
      `Cannot read the options of ${subject}: "certificates" must be ${known}or an object with files or a directory: received ${
        shown(value)
      }`,
    );
  }
  const names = "directory" in value ? ["directory"] : files;
  checkOptions(
    value,
    Object.fromEntries(names.map((name) => [name, "name"])),
    `${subject}, certificates`,
  );
}

function checkService(
  { namespace, name, port }: NonNullable<WebhookServerOptions["service"]>,
  subject: string,
): void {
  for (const [option, value] of Object.entries({ namespace, name })) {
    if (value === undefined || isLabel(value)) continue;
    throw new TypeError(
      `Cannot read the options of ${subject}, service: "${option}" must have up to 63 lower-case letters, digits and "-": received ${
        shown(value)
      }`,
    );
  }
  if (port !== 0) return;
  throw new RangeError(
    `Cannot read the options of ${subject}, service: "port" must be that of the Service, from 1 on: received 0`,
  );
}

function checkCallers(
  { names }: NonNullable<WebhookServerOptions["callers"]>,
  subject: string,
): void {
  if (names === undefined || names.length > 0 && !names.includes("")) return;
  throw new TypeError(
    `Cannot read the options of ${subject}, callers: "names" must have the name of a user, since nobody is let in otherwise: received ${
      names.length === 0 ? "none" : "an empty name"
    }`,
  );
}

function checkName(name: string, subject: string): void {
  if (isSubdomain(name)) return;
  throw new TypeError(
    `Cannot read the options of ${subject}: "name" must be a DNS subdomain, of up to 253 lower-case letters, digits, "-" and ".": received ${
      shown(name)
    }`,
  );
}
