import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FetchError, localError } from './errors.ts';

/**
 * The `Authorization` header for the credentials in a directory, as a Secret is mounted: the file
 * `token`, else `username` and `password`. A line feed at the end, as editors leave it, is not part
 * of them.
 *
 * @throws FetchError USAGE when there are none, or none that a header can carry.
 */
export async function readAuthorization(directory: string): Promise<string> {
  const [token, username, password] = await Promise.all(
    ['token', 'username', 'password'].map((name) => readCredential(join(directory, name))),
  );
  if (token !== undefined) {
    if (!/^[\x21-\x7e]+$/.test(token)) throw unusable('the token is empty or has characters that no header can carry');
    return `Bearer ${token}`;
  }
  if (username === undefined || password === undefined) {
    throw unusable('there is neither a file token nor files username and password');
  }
  if (/[:\p{Cc}]/u.test(username) || /\p{Cc}/u.test(password)) {
    throw unusable('the username has a colon, or one of them a control character');
  }
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

async function readCredential(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).replace(/\r?\n$/, '');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw localError(`Cannot read ${path}`, error);
  }
}

function unusable(why: string): FetchError {
  return new FetchError('USAGE', `Unusable credentials: ${why}`);
}
