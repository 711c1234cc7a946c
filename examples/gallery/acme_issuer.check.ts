/** Options of `coracle check examples/gallery/acme_issuer.ts`. */
import type { CheckOptions } from "@coracle/dev";
import { AcmeServer } from "./acme_server.ts";

const acme = new AcmeServer();
acme.now = () => Date.now();
acme.ask = (_name, _token, expected) => expected;

const options: Partial<CheckOptions> = {
  async externals(request) {
    return await acme.fetch(request.url, {
      method: request.method,
      body: await request.text(),
    });
  },
  // The key of the account is made again when it is needed. Requests have numbers
  // in them, and an order that was lost expires.
  ignore: ["Secret default/acme-account", "POST http://acme.test/"],
};

export default options;
