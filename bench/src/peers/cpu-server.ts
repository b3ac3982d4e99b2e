import { createServer } from 'node:http';

/** Answers every request with the milliseconds of CPU that the process has used. */
export function serveCpu(port: number): void {
  createServer((_request, response) => {
    const { user, system } = process.cpuUsage();
    response.end(String((user + system) / 1000));
  }).listen(port, '127.0.0.1');
}
