// What outlives a page: its cells and its variables, for as long as the tab lives.
const DAY = 86_400_000;

function opened() {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open("needle-live", 1);
    opening.onupgradeneeded = () => {
      for (const name of ["pages", "variables"]) opening.result.createObjectStore(name);
    };
    opening.onsuccess = () => resolve(opening.result);
    opening.onerror = () => reject(opening.error);
  });
}

async function within(name, mode, action) {
  const base = await opened();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = base.transaction(name, mode);
      const request = action(transaction.objectStore(name));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    base.close();
  }
}

export const load = (name, key) => within(name, "readonly", (store) => store.get(key));
export const drop = (name, key) => within(name, "readwrite", (store) => store.delete(key));
export const save = (name, key, value) =>
  within(name, "readwrite", (store) => store.put({ ...value, time: Date.now() }, key));

// What a tab left behind that was closed without a word.
export async function sweep() {
  for (const name of ["pages", "variables"]) {
    for (const key of await within(name, "readonly", (store) => store.getAllKeys())) {
      const record = await load(name, key);
      if (!(Date.now() - record?.time < DAY)) await drop(name, key);
    }
  }
}
