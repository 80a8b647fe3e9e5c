# What `cmake --install` copies besides executables (docs/installing.md). Components: daemon, workers, python, one Debian package each.
foreach(page preregd preregctl)
  install(FILES ops/man/${page}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT daemon)
endforeach()
foreach(page prereg-train prereg-eval prereg-data prereg-python prereg-lm-eval)
  install(FILES ops/man/${page}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT workers)
endforeach()

# bash and fish load a completion by the name of the command; zsh reads one file for all names in it.
set(bash_completions ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(fish_completions ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
set(zsh_completions ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
foreach(name preregctl preregd)
  install(FILES ops/completions/preregctl.bash DESTINATION ${bash_completions} RENAME ${name} COMPONENT daemon)
endforeach()
install(FILES ops/completions/preregctl.fish DESTINATION ${fish_completions} COMPONENT daemon)
install(FILES ops/completions/prereg-workers.fish DESTINATION ${fish_completions} RENAME preregd.fish COMPONENT daemon)
install(FILES ops/completions/_preregctl ops/completions/_prereg-workers DESTINATION ${zsh_completions} COMPONENT daemon)
foreach(name prereg-train prereg-eval prereg-data prereg-python prereg-lm-eval)
  install(FILES ops/completions/preregctl.bash DESTINATION ${bash_completions} RENAME ${name} COMPONENT workers)
  install(FILES ops/completions/prereg-workers.fish DESTINATION ${fish_completions} RENAME ${name}.fish COMPONENT workers)
endforeach()

# The units name the daemon by its installed path, which `cmake --install --prefix` may change. With prefix /, the tarball's, they
# find it from their own folder (%Y). systemd looks for user units below PREFIX/share for every prefix, for those of packages
# below /usr/lib.
install(CODE "
  set(PREREGD_BIN \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  if(CMAKE_INSTALL_PREFIX STREQUAL \"\") # what CMake makes of /
    set(PREREGD_BIN \"%Y/../../../${CMAKE_INSTALL_BINDIR}\")
  endif()
  set(user_units share)
  if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\")
    set(user_units lib)
  endif()
  foreach(unit user/preregd.service system/preregd@.service)
    get_filename_component(kind \${unit} DIRECTORY)
    get_filename_component(name \${unit} NAME)
    configure_file(\"${CMAKE_SOURCE_DIR}/ops/systemd/\${name}.in\" \"${CMAKE_BINARY_DIR}/systemd/\${name}\" @ONLY)
    set(below lib)
    if(kind STREQUAL \"user\")
      set(below \${user_units})
    endif()
    file(INSTALL \"${CMAKE_BINARY_DIR}/systemd/\${name}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/\${below}/systemd/\${kind}\")
  endforeach()" COMPONENT daemon)

# `prepare` finds prereg-data on the PATH.
install(PROGRAMS ops/programs/prepare ops/programs/passes DESTINATION ${CMAKE_INSTALL_DATADIR}/preregd/programs COMPONENT daemon)
install(DIRECTORY ops/programs/ DESTINATION ${CMAKE_INSTALL_DATADIR}/preregd/programs COMPONENT daemon
  PATTERN prepare EXCLUDE PATTERN passes EXCLUDE PATTERN __pycache__ EXCLUDE)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT daemon)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT daemon)
install(PROGRAMS ops/notify/mail ops/notify/ntfy ops/notify/slack DESTINATION ${CMAKE_INSTALL_DATADIR}/preregd/notify COMPONENT daemon)
