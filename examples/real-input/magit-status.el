;; Makes Magit's status view, without a terminal: REPO=DIRECTORY emacs --batch -l magit-status.el
;; With CACHE=1, Magit keeps the answers of git while it makes the view.
(require 'package)
(package-initialize)
(require 'magit)
(setq default-directory (file-name-as-directory (getenv "REPO")))
(let ((magit--refresh-cache (and (equal (getenv "CACHE") "1") (list (cons 0 0)))))
  (magit-status-setup-buffer default-directory))
(princ (format "%d lines\n" (count-lines (point-min) (point-max))))
