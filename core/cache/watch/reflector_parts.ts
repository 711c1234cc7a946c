import type { Kind, ResolvedKind } from "../../api/kind.ts";
import type { KubernetesObject } from "../../api/object.ts";
import type { ApiRequest } from "../../client/request.ts";
import type { HttpResponse } from "../../client/transport/transport.ts";
import type { Clock } from "../../clock.ts";
import type { Metrics } from "../../metrics.ts";
import type { Logger } from "../../logger.ts";
import type { InformerMetrics } from "../informer/informer_metrics.ts";
import type { InformerSelection } from "../informer/informer_options.ts";
import type { MemoryBudget } from "../store/memory_budget.ts";
import type { ReconnectSettings } from "./reconnect_settings.ts";
import type { RelistQueue } from "./relist_queue.ts";
import type { ReflectorSink } from "./reflector_sink.ts";
import type { TimeSlice } from "./time_slice.ts";

/** What a `Reflector` asks of a client. */
export interface ReflectorClient {
  /** Sends a request and gives its answer, the body unread. */
  request(request: ApiRequest): Promise<HttpResponse>;
  /** Finds out where the objects of a kind are. */
  resolve<T extends KubernetesObject>(kind: Kind<T>): Promise<ResolvedKind<T>>;
  /** Defaults of an informer over this client. */
  readonly defaults?: {
    readonly clock?: Clock | undefined;
    readonly logger?: Logger | undefined;
    readonly metrics?: Metrics | undefined;
    readonly random?: (() => number) | undefined;
  };
}

/** What a `Reflector` is made of. */
export interface ReflectorParts extends
  Pick<
    InformerSelection,
    "labelSelector" | "fieldSelector" | "shardSelector"
  > {
  readonly client: ReflectorClient;
  readonly kind: Kind;
  readonly namespace: string | undefined;
  readonly metadataOnly: boolean;
  readonly sink: ReflectorSink;
  /** Cuts long work into slices. */
  readonly slice: TimeSlice;
  /** What the caches may hold; no limit when absent. */
  readonly budget: MemoryBudget | undefined;
  /** Who else reads a whole state anew, if anybody. */
  readonly relists: RelistQueue | undefined;
  readonly reconnect: ReconnectSettings;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
  readonly metrics: InformerMetrics;
}
