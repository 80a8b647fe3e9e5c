/* Calls that this project does not make, turned into errors (included by the compiler before every
 * C file). */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BANNED(func) this_project_does_not_call_##func

#undef strcpy
#define strcpy(d, s) BANNED(strcpy)
#undef strcat
#define strcat(d, s) BANNED(strcat)
#undef strncpy
#define strncpy(d, s, n) BANNED(strncpy)
#undef strncat
#define strncat(d, s, n) BANNED(strncat)
#undef strtok
#define strtok(s, d) BANNED(strtok)
#undef sprintf
#define sprintf(...) BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#define atoi(s) BANNED(atoi)
#undef atol
#define atol(s) BANNED(atol)
#undef atof
#define atof(s) BANNED(atof)
#undef gets
#define gets(s) BANNED(gets)
#undef asctime
#define asctime(t) BANNED(asctime)
#undef ctime
#define ctime(t) BANNED(ctime)
#undef gmtime
#define gmtime(t) BANNED(gmtime)
#undef localtime
#define localtime(t) BANNED(localtime)

#endif
