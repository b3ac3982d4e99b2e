// `npm run e2e:images -- FILE`: writes the test program's images, to be loaded or pushed for the
// cluster of E2E_KUBECONFIG.
import { writeTestImages } from './images.ts';

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error('Which file?');
await writeTestImages(file);
