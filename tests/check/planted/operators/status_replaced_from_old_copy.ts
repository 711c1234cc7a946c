/**
 * Bug: one of two controllers writes the status as a whole from the copy that it had
 * when its work began, so that what the other has written in between is lost.
 */
import {
  defineKind,
  Operator,
  type OperatorOptions,
  patchStatus,
} from "@coracle/operator";
import { ConfigMap, Secret } from "@coracle/operator/kinds";
import { z } from "zod";

export const write = "Site default/sample";

const Site = defineKind({
  group: "planted.coracle.dev",
  version: "v1",
  kind: "Site",
  spec: z.object({ title: z.enum(["one", "two"]), secure: z.boolean() }),
  status: z.object({ pages: z.string(), certificate: z.string() }).partial(),
});

export function operator(options: OperatorOptions = {}): Operator {
  const operator = new Operator(options);
  operator.register(Site, {
    async reconcile(site, ctx) {
      const { metadata: { name, namespace = "" }, spec } = site;
      const pages = `${name}-pages`;
      await ctx.apply(ConfigMap, {
        metadata: { name: pages },
        data: { title: spec.title },
      });
      if (site.status?.pages === pages) return;
      const { resourceVersion: _, ...metadata } = site.metadata;
      const status = { ...site.status, pages };
      await ctx.client.status.replace(Site, {
        ...site,
        metadata: { ...metadata, namespace },
        status,
      });
    },
  }, { name: "pages", owns: [ConfigMap], install: true });
  operator.register(Site, {
    async reconcile({ metadata: { name, namespace }, spec, status }, ctx) {
      const certificate = `${name}-certificate`;
      if (!spec.secure) return undefined;
      await ctx.apply(Secret, {
        metadata: { name: certificate },
        stringData: { title: spec.title },
      });
      // The certificate is issued once, which a marker without an owner says.
      const marker = { name: `${name}-issued`, namespace };
      if (status?.certificate || await ctx.client.find(ConfigMap, marker)) {
        return undefined;
      }
      await ctx.client.create(ConfigMap, { metadata: marker });
      return patchStatus({ certificate });
    },
  }, { name: "certificates", owns: [Secret] });
  return operator;
}
