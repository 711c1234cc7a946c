/** Options of `coracle check examples/dns_sync.ts`. */
import type { CheckOptions } from "@coracle/dev";

const service = (name: string) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: {
    namespace: "default",
    name,
    annotations: { "dns.example.com/hostname": `${name}.example.com` },
  },
  spec: { type: "LoadBalancer", ports: [{ port: 80 }] },
});

/** The address of a Service, which the controller of a cloud writes. */
const addressed = (name: string, ip: string) => {
  const { spec: _, ...object } = service(name);
  return { ...object, status: { loadBalancer: { ingress: [{ ip }] } } };
};

let zone = "{}";

const options: Partial<CheckOptions> = {
  async externals(request) {
    if (request.method === "PUT") zone = await request.text();
    return new Response(zone);
  },
  workload: [
    { apply: service("a") },
    { patch: addressed("a", "10.0.0.1") },
    { apply: service("b"), settle: false },
    { patch: addressed("b", "10.0.0.2") },
    { patch: addressed("a", "10.0.0.3") },
    { delete: service("b") },
    { wait: "2h" },
  ],
};

export default options;
