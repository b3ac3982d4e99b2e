/** Where the notifications of services go, as last received. */
export interface ChannelDirectory {
  /**
   * @param isFresh whether the store itself is to be asked.
   * @returns URLs by channel: those of the service, the global ones where it has none.
   */
  find(serviceName: string, isFresh: boolean): Promise<ReadonlyMap<string, string>>;
}
