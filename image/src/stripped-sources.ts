// Preloaded in the image, whose `.ts` files have had their types stripped when it was built (tools/strip-types.ts): Node takes them for
// what they are, JavaScript. Else every process would load Node's own stripper, which takes 25 MiB and a third of the time to start.
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

registerHooks({
  load: (url, context, nextLoad) =>
    url.startsWith('file:') && url.endsWith('.ts')
      ? { format: 'module', source: readFileSync(fileURLToPath(url)), shortCircuit: true }
      : nextLoad(url, context),
});
