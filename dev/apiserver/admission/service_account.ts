import type {
  Container,
  Pod,
  ServiceAccount,
  Volume,
} from "@coracle/operator/kinds";
import { fixed } from "../settle.ts";
import { type AdmissionPlugin, type Attributes, refusal } from "./admission.ts";

const SERVICE_ACCOUNTS = { group: "", plural: "serviceaccounts" } as const;

/** Mount path of the service account credentials in a Pod. */
const TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Prefix of the names of token volumes. */
const VOLUME_PREFIX = "kube-api-access-";

/** Annotation of pods that a kubelet started from a manifest file. */
const MIRROR = "kubernetes.io/config.mirror";

/** Plug-in that sets the service account of new Pods, with its token volume and pull secrets. */
export const SERVICE_ACCOUNT: AdmissionPlugin = {
  name: "ServiceAccount",
  operations: ["CREATE"],
  resources: ["pods"],
  mutate(attributes): void {
    const { spec, metadata } = attributes.object as unknown as Pod;
    if (metadata.annotations?.[MIRROR] !== undefined) return;
    const name = spec.serviceAccountName || "default";
    spec.serviceAccountName = spec.serviceAccount = name;
    const account = accountOf(attributes, name);
    const mounts = spec.automountServiceAccountToken ??
      account.automountServiceAccountToken ?? true;
    if (mounts) mountToken(attributes);
    if (!spec.imagePullSecrets?.length && account.imagePullSecrets?.length) {
      spec.imagePullSecrets = structuredClone(account.imagePullSecrets);
    }
  },
  validate(attributes): void {
    const { spec, metadata } = attributes.object as unknown as Pod;
    if (metadata.annotations?.[MIRROR] !== undefined) {
      if (!spec.serviceAccountName) return;
      throw refusal(
        attributes,
        "a mirror pod may not reference service accounts",
      );
    }
    accountOf(attributes, spec.serviceAccountName ?? "");
  },
};

function accountOf(attributes: Attributes, name: string): ServiceAccount {
  const { hooks, namespace } = attributes;
  const account = hooks.find(SERVICE_ACCOUNTS, { namespace, name });
  if (account !== undefined) return account as unknown as ServiceAccount;
  throw refusal(
    attributes,
    `error looking up service account ${namespace}/${name}: serviceaccount ${
      JSON.stringify(name)
    } not found`,
  );
}

function mountToken({ object, request }: Attributes): void {
  const { spec } = object as unknown as Pod;
  const existing = spec.volumes?.find(({ name }) =>
    name.startsWith(VOLUME_PREFIX)
  );
  const { random } = request.context;
  const name = existing?.name ??
    VOLUME_PREFIX + fixed("volume", () => random.suffix());
  let mounted = false;
  const mount = (container: Container) => {
    const mounts = container.volumeMounts ?? [];
    if (mounts.some(({ mountPath }) => mountPath === TOKEN_PATH)) return;
    container.volumeMounts = [
      ...mounts,
      { name, readOnly: true, mountPath: TOKEN_PATH },
    ];
    mounted = true;
  };
  spec.initContainers?.forEach(mount);
  spec.containers?.forEach(mount);
  if (mounted && !existing) {
    spec.volumes = [...spec.volumes ?? [], tokenVolume(name)];
  }
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        {
          configMap: {
            name: "kube-root-ca.crt",
            items: [{ key: "ca.crt", path: "ca.crt" }],
          },
        },
        {
          downwardAPI: {
            items: [{
              path: "namespace",
              fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" },
            }],
          },
        },
      ],
      defaultMode: 0o644,
    },
  };
}
