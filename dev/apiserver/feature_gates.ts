/**
 * Feature gates of the server: features that are off in kube-apiserver 1.37,
 * named like its gates.
 */
export interface FeatureGates {
  /**
   * Whether lists, watches and deletions of collections support `shardSelector`
   * (KEP-5866, alpha since Kubernetes 1.36). Otherwise the parameter is ignored
   * like any unknown one.
   *
   * @default {false}
   */
  readonly ShardedListAndWatch?: boolean | undefined;
}
