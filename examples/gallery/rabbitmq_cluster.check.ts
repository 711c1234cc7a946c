/** Options of `coracle check examples/gallery/rabbitmq_cluster.ts`. */
import type { CheckOptions } from "@coracle/dev";

const options: Partial<CheckOptions> = {
  // A cluster is not scaled down: members that were there once stay.
  ignore: [
    "StatefulSet .spec.replicas",
    "PersistentVolumeClaim",
    "RabbitmqCluster .status.readyReplicas",
    "RabbitmqCluster .status.conditions",
  ],
};

export default options;
