// The button that changes between light and dark.

const theme = part("theme");
const isDark = () =>
  (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
function sayTheme() {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-label", isDark() ? "Change to light colours" : "Change to dark colours");
  hosts.forEach((host) => host.plot?.redraw(false));
}
theme.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  sayTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", sayTheme);
theme.hidden = false;
sayTheme();
