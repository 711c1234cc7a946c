import type { ApplyObject } from "../api/object.ts";
import type { Client } from "../client/client.ts";
import type { WebhookClientConfig } from "../client/webhook_host.ts";
import { CRD_KIND, crdConversion, type CrdObject } from "../crd/crd_object.ts";
import type { DefinedKind } from "../crd/kind_definition.ts";

/** Path of the conversion of all kinds on the webhook listener of an operator. */
export const CONVERT_PATH = "/convert";

/**
 * Writes into the definition of a kind where an API server calls the operator, with
 * the certificates that it trusts. A missing definition is left to who installs it.
 */
export async function registerConversion(
  client: Client,
  { plural, group }: DefinedKind,
  { clientConfig, fieldManager, signal }: {
    readonly clientConfig: WebhookClientConfig;
    readonly fieldManager: string;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const name = `${plural}.${group}`;
  const present = await client.find(CRD_KIND, { name }, { signal });
  if (present === undefined) return;
  // The server answers an apply that changes nothing without a write.
  const object = {
    metadata: { name },
    spec: { conversion: crdConversion(clientConfig) },
  };
  await client.apply(
    CRD_KIND,
    object as unknown as ApplyObject<CrdObject>,
    { force: true, fieldManager, signal },
  );
}
