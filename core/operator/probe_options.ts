import { checkCertificatesOption } from "../admission/webhook_options.ts";
import type { OptionTable, Settings } from "../api/options.ts";

/** Options of the server for probes and metrics. */
export interface ProbeOptions {
  /** Port to listen on; 0 for any free port. */
  readonly port: number;
  /**
   * Address to listen on.
   *
   * @default {"0.0.0.0"}
   */
  readonly host?: string | undefined;
  /**
   * Whether `/debug/why?object=NAMESPACE/NAME` returns the last runs of an
   * object, for `coracle why`, and `/debug/state` the controllers and the objects
   * that ran last, for `coracle ui`. The responses contain error messages of
   * reconcilers and conditions of objects; that of `/readyz` then contains error
   * messages of watches, sources and the Lease, beside counts and names.
   * `/debug/profile/cpu?seconds=10` and `/debug/profile/heap` record a profile of
   * the process, for the loopback interface only, or by secure metrics.
   *
   * @default {false}
   */
  readonly debug?: boolean | undefined;
  /**
   * Server for the metrics. Defaults to that of the probes, where anyone who
   * reaches the port may read them.
   */
  readonly metrics?: {
    /**
     * Whether metrics are served by HTTPS on a port of their own, to those whom the
     * API server knows by their bearer token (TokenReview), and who may `get` the
     * path `/metrics` (SubjectAccessReview). Others are answered with 401 or 403.
     * The same holds for the paths of `debug`, which are served there as well.
     *
     * @default {false}
     */
    readonly secure?: boolean | undefined;
    /**
     * Port to listen on; 0 for any free port.
     *
     * @default {8443}
     */
    readonly port?: number | undefined;
    /**
     * Address to listen on.
     *
     * @default {"0.0.0.0"}
     */
    readonly host?: string | undefined;
    /**
     * Certificate: `"self"` for one that the process makes for itself, so that
     * clients cannot verify it; or files that others replace, such as cert-manager:
     * their paths, or a directory with `tls.crt` and `tls.key`.
     *
     * @default {"self"}
     */
    readonly certificates?:
      | "self"
      | {
        /** File with the certificate and its chain, in PEM. */
        readonly certFile: string;
        /** File with the private key, in PEM. */
        readonly keyFile: string;
      }
      | { readonly directory: string }
      | undefined;
  } | undefined;
  /**
   * Liveness check of the program: when it returns false, `/healthz` answers 503
   * and the kubelet restarts the container. Broken connections are not a reason
   * to return false, since they recover by themselves. Defaults to true.
   */
  readonly live?: (() => boolean) | undefined;
}

type MetricsServerOptions = NonNullable<ProbeOptions["metrics"]>;

const METRICS_OPTIONS: OptionTable<MetricsServerOptions> = {
  secure: { type: "boolean", default: false },
  port: { type: "port", default: 8443 },
  host: { type: "name", default: "0.0.0.0" },
  certificates: {
    type: "any",
    default: "self",
    words: ["self"],
    check: (value, subject) =>
      checkCertificatesOption(value, subject, {
        words: ["self"],
        files: ["certFile", "keyFile"],
      }),
  },
};

export const PROBE_OPTIONS: OptionTable<ProbeOptions, "live"> = {
  port: "port",
  host: { type: "name", default: "0.0.0.0" },
  debug: { type: "boolean", default: false },
  metrics: { type: "object", default: {}, options: METRICS_OPTIONS },
  live: "function?",
};

/** Options of the server for metrics with defaults. */
export type MetricsServerSettings = Settings<MetricsServerOptions>;

/** Options of the probes with defaults. */
export interface ProbeSettings
  extends Omit<Settings<ProbeOptions, "live">, "metrics"> {
  readonly metrics: MetricsServerSettings;
}
