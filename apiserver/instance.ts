import type { Clock } from "../core/clock.ts";
import type { Logger } from "../core/logger.ts";
import type { PodHooks } from "./pods/pod_hooks.ts";
import type { ApiContext } from "./api_context.ts";
import { AdmissionChain } from "./admission/admission.ts";
import { dynamicPlugins } from "./admission/dynamic_admission.ts";
import { admissionPlugins } from "./admission/plugins.ts";
import {
  WebhookCaller,
  type WebhookServices,
} from "./admission/webhook_caller.ts";
import { bootstrap } from "./bootstrap.ts";
import { CrdController } from "./controllers/crd_controller.ts";
import { GarbageCollector } from "./controllers/garbage_collector.ts";
import { VolumeProtection } from "./controllers/volume_protection.ts";
import { ReadinessSimulator } from "./controllers/readiness_simulator.ts";
import { NamespaceController } from "./controllers/namespace_controller.ts";
import { OpenApiRoutes } from "./discovery/openapi_routes.ts";
import type { ServedVersion } from "./discovery/discovery_documents.ts";
import type { Random } from "./random.ts";
import { WatchHub } from "./read/watch_hub.ts";
import type { BuiltinResources, CustomResources } from "./registry.ts";
import { type AuditEvent, RequestHandler } from "./request_handler.ts";
import type { User } from "./request/user.ts";
import { Resources } from "./resources.ts";
import type { FeatureGates } from "./feature_gates.ts";
import type { HistoryLimits } from "./storage/history.ts";
import type { JournalContent } from "./storage/file_journal.ts";
import { Store } from "./storage/store.ts";
import { storageKey, StoredObject } from "./storage/stored_object.ts";

/** Dependencies and settings of an {@linkcode Instance}. */
export interface InstanceOptions {
  readonly builtin: BuiltinResources;
  readonly crd: CustomResources;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Feature gates; by default all are off. */
  readonly featureGates?: FeatureGates | undefined;
  /** Hooks of pods; by default there are none. */
  readonly pods?: PodHooks | undefined;
  /** Services that webhooks name; by default there are none. */
  readonly services?: WebhookServices | undefined;
  readonly history: HistoryLimits | undefined;
  /** Delay until a new CRD is established, in milliseconds. */
  readonly establishingDelay: number;
  /** Whether workloads become ready by simulation. */
  readonly simulate: boolean;
  readonly audit: ((event: AuditEvent) => void) | undefined;
  readonly authenticate: (token: string) => User | undefined;
  /** Certificate of the authority, in PEM. */
  readonly authority: () => string;
  /** Objects from an earlier instance or a file. */
  readonly content: JournalContent | undefined;
}

/**
 * Running state of a server between a start and a stop or crash: store,
 * controllers and request handler.
 */
export class Instance {
  readonly context: ApiContext;
  readonly handler: RequestHandler;
  readonly #controllers: readonly { stop(): void }[];

  constructor(options: InstanceOptions) {
    const { builtin, crd, clock, random, logger, authenticate } = options;
    const store = new Store({ history: options.history });
    const resources = new Resources(builtin.builtinDefinitions());
    const context: ApiContext = {
      store,
      resources,
      watches: new WatchHub(store, clock),
      clock,
      random,
      logger,
      featureGates: options.featureGates ?? {},
      pods: options.pods ?? {},
      admission: new AdmissionChain(admissionPlugins(dynamicPlugins(store))),
      webhooks: new WebhookCaller({
        clock,
        services: options.services ?? {},
        serviceExists: (namespace, name) =>
          store.collection({ group: "", plural: "services" })
            .get(storageKey({ namespace, name })) !== undefined,
      }),
      authenticate,
    };
    this.context = context;
    const definitions = new CrdController(
      context,
      crd,
      options.establishingDelay,
    );
    const collector = new GarbageCollector(context);
    const namespaces = new NamespaceController(context, options.authority);
    const observers = [
      collector,
      new VolumeProtection(context),
      ...(options.simulate ? [new ReadinessSimulator(context)] : []),
    ];
    this.#controllers = [definitions, namespaces, ...observers];
    if (options.content === undefined) bootstrap(context);
    else {
      this.#load(options.content, definitions);
      for (const observer of observers) observer.begin();
    }
    store.begin();
    namespaces.begin();
    this.handler = new RequestHandler({
      context,
      audit: options.audit,
      openApi: new OpenApiRoutes(
        context,
        (served) => Promise.resolve(document(served, { builtin, crd })),
      ),
    });
  }

  /** Loads objects; CRDs are loaded before their custom resources. */
  #load(content: JournalContent, definitions: CrdController): void {
    const { store, resources, logger } = this.context;
    const custom: JournalContent["objects"][number][] = [];
    const restore = (entry: JournalContent["objects"][number]): boolean => {
      const definition = resources.find(entry.group, entry.plural);
      if (definition === undefined) return false;
      const { object, revision } = entry;
      store.collectionOf(definition).restore(
        new StoredObject(definition, object, {
          revision,
          current: !definition.custom,
        }),
      );
      return true;
    };
    for (const entry of content.objects) {
      if (!restore(entry)) custom.push(entry);
    }
    store.resumeAt(content.revision);
    definitions.begin();
    for (const entry of custom) {
      if (restore(entry)) continue;
      const { group, plural } = entry;
      logger.warn("Cannot load an object whose kind nobody defines", {
        group,
        plural,
        name: entry.object.metadata.name,
      });
    }
  }

  /** Objects of the store, for a later instance. */
  content(): JournalContent {
    const { store } = this.context;
    const objects: JournalContent["objects"][number][] = [];
    for (const collection of store.collections()) {
      for (const stored of collection.values()) {
        objects.push({
          ...collection.resource,
          revision: stored.revision,
          object: stored.parse(),
        });
      }
    }
    return { revision: store.revision, objects };
  }

  /** Stops all watches and controllers. */
  stop(): void {
    for (const controller of this.#controllers) controller.stop();
    this.context.watches.endAll();
    this.context.webhooks.close();
  }
}

function document(
  { group, version, resources }: ServedVersion,
  { builtin, crd }: {
    readonly builtin: BuiltinResources;
    readonly crd: CustomResources;
  },
): unknown {
  const definitions = resources.map(({ definition }) => definition);
  return definitions.some(({ custom }) => custom)
    ? crd.customOpenApi({ group, version }, definitions)
    : builtin.builtinOpenApi(
      group === "" ? `api/${version}` : `apis/${group}/${version}`,
    );
}
