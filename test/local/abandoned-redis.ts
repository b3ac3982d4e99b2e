// Started by redis.test.ts, which kills it: starts a Redis, prints its port, and waits.
import { startRedis } from '@rollcall/local/redis.ts';

const [directory = '', binary = '{}'] = process.argv.slice(2);
const redis = await startRedis({ directory, binary: JSON.parse(binary) });
console.log(redis.port);
// Keeps the process alive until it is killed.
setInterval(() => undefined, 60_000);
