// Light or dark, decided before anything is painted. Not a module: modules run too late for that.
(() => {
  const STORED = 'cocode.theme';
  const read = () => {
    try {
      return localStorage.getItem(STORED);
    } catch {
      return null;
    }
  };
  const apply = (theme) => {
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  apply(read());
  globalThis.cocodeTheme = {
    /** light, dark, or auto, which is what the system says. */
    get: () => document.documentElement.dataset.theme ?? 'auto',
    set(theme) {
      apply(theme);
      try {
        if (theme === 'auto') localStorage.removeItem(STORED);
        else localStorage.setItem(STORED, theme);
      } catch {
        // Without storage the choice holds as long as the page does.
      }
    },
  };
})();
