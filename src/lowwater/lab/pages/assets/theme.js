// The button that changes between light and dark.

const theme = part("theme");
const isDark = () =>
  (document.documentElement.dataset.theme ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const sayTheme = () => {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", isDark() ? "Change to light colours" : "Change to dark colours");
};
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  sayTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", sayTheme);
theme.hidden = false;
sayTheme();
