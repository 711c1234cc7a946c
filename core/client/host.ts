import { hostname } from "node:os";
import type { AdmissionRule } from "../api/admission_rule.ts";
import type { Kind } from "../api/kind.ts";
import { type Clock, systemClock } from "../clock.ts";
import type { Logger } from "../logger.ts";
import type { Transport } from "./transport/transport.ts";
import type {
  NamedWebhookHost,
  WebhookClientConfig,
  WebhookHost,
} from "./webhook_host.ts";

/** Handle of an operator for tools such as `coracle dev`. */
export interface OperatorHandle {
  /** Controllers of the operator, and the kinds that they watch. */
  readonly controllers: readonly {
    /** Name of the controller. */
    readonly name: string;
    /** Kind of the primaries of the controller. */
    readonly kind: Kind;
    /** Whether the controller is that of a job, which has no primaries. */
    readonly isJob?: boolean | undefined;
    /** Kind and namespace of the object that keeps the state of a job. */
    readonly stateKind?:
      | { readonly kind: Kind; readonly namespace?: string | undefined }
      | undefined;
    /** Clusters of the primaries; undefined for that of the operator. */
    readonly clusters?:
      | {
        /** Objects of the operator's own cluster that the clusters come from. */
        readonly reads?:
          | { readonly kind: Kind; readonly namespace?: string | undefined }
          | undefined;
      }
      | undefined;
    /** Selection of the kinds that the controller follows beside its own. */
    readonly watchedSelection?:
      | {
        readonly selector: { readonly groups?: readonly string[] | undefined };
        /** Whether a reconciler writes their objects. */
        readonly isReconciled: boolean;
        /** Namespaces of the objects; undefined for those of the operator. */
        readonly namespaces:
          | "all"
          | "current"
          | readonly string[]
          | undefined;
      }
      | undefined;
    /** Kinds of the secondary resources, from the event sources. */
    readonly secondaryKinds: readonly Kind[];
    /** Kinds that the controller only watches. */
    readonly readOnlyKinds: readonly Kind[];
    /** Where its event sources are called from outside. */
    readonly listens?:
      | readonly {
        /** Name of the source. */
        readonly name: string;
        /** Port; 0 for any free one. */
        readonly port: number;
        /** Address to listen on. */
        readonly host: string;
      }[]
      | undefined;
    /** Options of the controller that tools need. */
    readonly settings: {
      /** Whether the CustomResourceDefinition is applied at start. */
      readonly install: boolean;
      /** Whether stored objects are rewritten in the storage version at start. */
      readonly migrateStorage?: boolean | undefined;
      /** Watched namespaces; undefined for those of the operator. */
      readonly namespaces?: "all" | "current" | readonly string[] | undefined;
      /** Whether the primaries get a finalizer. */
      readonly usesFinalizer: boolean;
      /** Whether primaries have a status; derived from the kind if absent. */
      readonly hasStatus?: boolean | undefined;
      /** Workflow that runs before the reconciler. */
      readonly workflow?: { toMermaid?(): string } | undefined;
    };
  }[];
  /** Options of the operator that its deployment depends on. */
  readonly settings: {
    /** Watched namespaces. */
    readonly namespaces: "all" | "current" | readonly string[];
    /** Options of the caches. */
    readonly cache?:
      | {
        /** Snapshots of the caches; undefined if none are written. */
        readonly snapshot?: { readonly path: string } | undefined;
      }
      | undefined;
    /** Lease of the leader election; by default in the namespace of the operator. */
    readonly leaderElection?: {
      readonly name: string;
      readonly namespace?: string | undefined;
    } | undefined;
    /** Lease of the sharding; those of the replicas have its name as prefix. */
    readonly sharding?: {
      readonly name: string;
      readonly namespace?: string | undefined;
    } | undefined;
    /** Programs that it runs. */
    readonly programs?: readonly string[] | undefined;
    /** Grace period of its stop, in milliseconds. */
    readonly shutdownGrace?: number | undefined;
    /** Webhooks of the kinds that it admits; undefined without any. */
    readonly webhooks?:
      | WebhookHost
      | {
        /** Port to listen on. */
        readonly port: number;
        /** Address to listen on. */
        readonly host: string;
        /** Service in front of the pods; undefined if it is called by a URL. */
        readonly service?:
          | {
            readonly namespace?: string | undefined;
            readonly name: string;
            readonly port?: number | undefined;
          }
          | undefined;
        /** Name of the configurations and of the Secret. */
        readonly name?: string | undefined;
        /** Whose certificates are served: those of a Secret, of cert-manager, or of files. */
        readonly certificates: "self" | "cert-manager" | object;
      }
      | undefined;
    /** Policies that the operator applies, with their bindings. */
    readonly policies?:
      | readonly {
        /** Version of Kubernetes from which the policy works. */
        readonly since: string;
        /** Kind of the objects that the policy reads; undefined if none exists. */
        readonly params?: Kind | undefined;
        /** Policy object. */
        readonly policy: {
          readonly kind?: string | undefined;
          readonly metadata: { readonly name: string };
        };
        /** Binding, which puts the policy into force. */
        readonly binding: {
          readonly kind?: string | undefined;
          readonly metadata: { readonly name: string };
        };
      }[]
      | undefined;
    /** Where runs are recorded; undefined if they are not. */
    readonly record?:
      | {
        /** File of the recording; undefined if a function gets it. */
        readonly path?: string | undefined;
      }
      | undefined;
    /** Options of the server of the probes. */
    readonly probes?:
      | {
        /** Port to listen on. */
        readonly port: number;
        /** Address to listen on. */
        readonly host: string;
        /** Whether the server answers `coracle why`. */
        readonly debug: boolean;
        /** Server of the metrics, if they are secure. */
        readonly metrics: {
          /** Whether the metrics have a port of their own, with HTTPS. */
          readonly secure: boolean;
          /** Port to listen on. */
          readonly port: number;
          /** Address to listen on. */
          readonly host: string;
          /** Whose certificate is served: that of the process, or of files. */
          readonly certificates: "self" | object;
        };
      }
      | undefined;
  };
  /** Lists where each rule for the kinds of the operator is enforced. */
  admission(): readonly AdmissionRule[];
  /** Returns the runs of an object in each controller that knows it. */
  why(key: string): readonly object[];
  /** Returns the state of the operator as plain data. */
  inspect(): object;
  /** Returns a controller for tools that control it; undefined if none exists. */
  controllerNamed(name: string): {
    /** Adds a run of an object. */
    trigger(key: string): void;
    /** Kind of the primaries of the controller. */
    readonly kind: Kind;
    /** Options of the controller that tools need. */
    readonly settings: {
      /** Annotation that pauses a primary; undefined if none exists. */
      readonly pauseAnnotation?: string | undefined;
    };
  } | undefined;
  /**
   * Starts the operator; resolves when its caches are synced. A second call
   * only waits for the first.
   */
  start(): Promise<void>;
  /** Stops the operator gracefully; safe to call more than once. */
  stop(): Promise<void>;
}

/**
 * Hooks of a tool that loads the program of an operator, such as `coracle dev`.
 * The program needs no change, because every operator calls them itself.
 */
export interface OperatorHooks {
  /**
   * Whether operators run. If not, `start` and `run` return immediately, for
   * tools that only inspect the controllers.
   */
  readonly runs: boolean;
  /** Logger for operators without one of their own. */
  readonly logger?: Logger | undefined;
  /** Handles the creation of an operator. */
  made(operator: OperatorHandle): void;
  /** Handles the start of an operator, before its controllers; awaited. */
  starting?(operator: OperatorHandle): Promise<void>;
  /**
   * Handles that a starting operator can be called for the conversion of kinds, whose
   * definitions are to be installed; awaited.
   */
  converting?(
    kinds: readonly Kind[],
    conversion: WebhookClientConfig,
  ): Promise<void>;
  /** Handles the completed start of an operator, whose caches are synced. */
  started?(operator: OperatorHandle): void;
  /**
   * Handles that a stopping operator has only its webhooks left, which answer until
   * the promise resolves; awaited.
   *
   * @returns Names of the policies of the process that has taken over from this one;
   * undefined if none has, so that all is removed.
   */
  leaving?(operator: OperatorHandle): Promise<readonly string[] | undefined>;
}

/**
 * Host: what clients and operators take from the process that they run in. Tools
 * replace parts of it, and run programs of operators without a change of their
 * code: `coracle dev` observes the operators, `coracle check` simulates all of it.
 */
export interface Host {
  /** Opens the transport of a client; undefined for connections to its cluster. */
  readonly openTransport?: (() => Transport) | undefined;
  /** Returns the clock for clients and operators without one of their own. */
  readonly clock: () => Clock;
  /** Returns the clock of a leader's Lease; undefined for that of the operator. */
  readonly leaderClock?: (() => Clock | undefined) | undefined;
  /** Random numbers for those without a source of their own. */
  readonly random: () => number;
  /** Returns the host name, which distinguishes replicas. */
  readonly hostname: () => string;
  /** Whether operators serve their probes. */
  readonly servesProbes: boolean;
  /** Minimum time after which a server ends a watch, in milliseconds. */
  readonly minWatchTimeout?: number | undefined;
  /** Promise that resolves at the end of a simulation; undefined without one. */
  readonly ended?: Promise<void> | undefined;
  /**
   * What serves the webhooks of operators, in place of the listener of the program;
   * undefined for that.
   */
  readonly webhooks?: NamedWebhookHost | HostedListener | undefined;
  /**
   * Returns the address of a Service by its name in DNS, where no cluster answers;
   * undefined to ask DNS.
   */
  readonly addressOf?: ((name: string) => string | undefined) | undefined;
  /** Hooks of the tool that has loaded the operators; undefined in production. */
  readonly operators?: OperatorHooks | undefined;
}

/** Listener of webhooks on the loopback interface, on any free port. */
export interface HostedListener {
  /** The API server runs on the same machine, and reaches the listener by its URL. */
  readonly besideServer: true;
}

const PROCESS: Host = {
  clock: () => systemClock,
  random: Math.random,
  hostname,
  servesProbes: true,
};

/** Global key of the replacements, which all copies of the library share. */
const REPLACEMENTS = Symbol.for("@coracle/operator/host");

type Replacements = readonly Partial<Host>[];

function replacements(): Replacements {
  return (globalThis as Record<symbol, Replacements | undefined>)[
    REPLACEMENTS
  ] ?? [];
}

function setReplacements(value: Replacements): void {
  (globalThis as Record<symbol, Replacements | undefined>)[REPLACEMENTS] =
    value;
}

/** Returns the host of this process, with what tools have replaced. */
export function host(): Host {
  const replaced = replacements();
  return replaced.length === 0 ? PROCESS : Object.assign(
    {},
    PROCESS,
    ...replaced,
  ) as Host;
}

/**
 * Replaces parts of the host. Of several replacements of a part the last holds;
 * they may be undone in any order.
 *
 * @returns Function that undoes the replacement.
 */
export function replaceHost(parts: Partial<Host>): () => void {
  setReplacements([...replacements(), parts]);
  return () => setReplacements(replacements().filter((one) => one !== parts));
}
